"""From text to rules: documents in JSON or YAML, read strictly, with every fault at its line and column.

`reader` takes a text, `yaml_text` and `json_text` make `nodes` of it that know where they stand, `document` builds a
value of them. A condition is read by `conditions`; `expression` makes of `when:` the nodes that `conditions` would have
been given. `schema` tells editors what the tables of these modules say.
"""
