"""The interfaces of other memory libraries, served by this one."""
