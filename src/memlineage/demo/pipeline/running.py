"""The pipeline, three times over: with lineage, with a flat memory, and run from the start again.

All three call the same steps. With lineage, feeds are tools, steps are recipes, and the report is a model's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import memlineage as ml
from memlineage.demo.flat import FlatMemory
from memlineage.demo.pipeline.shop import DAYS, FEEDS, Shop, Wholesaler, new_clock, number_in

__all__ = ["FlatPipeline", "Pipeline", "World", "open_memory", "results"]

POLICIES: Final = Path(__file__).parent / "policies"
_TASK: Final = "Every evening: what was sold, what to order, how many tills to open"
_PRICES: Final = {"feed": 0.02, "clean": 0.001, "total": 0.001, "tills": 0.001, "forecast": 0.01, "report": 0.05}


class World:
    """Everything outside the memory."""

    def __init__(self) -> None:
        self.clock = new_clock()
        self.shop = Shop(self.clock)
        self.wholesaler = Wholesaler()


def open_memory(db: str, world: World) -> ml.Memory:
    """The memory, its policy, and the tools that it may call by itself."""
    memory = ml.Memory.open(db, policies=[POLICIES], embedder="lexical", clock=world.clock)
    for branch in ("north", "south"):
        memory.register_tool(f"feed_{branch}", refresh=world.shop.refresh, cost=_PRICES["feed"])
    memory.register_tool("order_stock", run=world.wholesaler.order, compensate=world.wholesaler.cancel)
    return memory


class Pipeline:
    """With lineage: every step says what it was made from, and how it is made again."""

    def __init__(self, scope: ml.Scope, world: World) -> None:
        self._scope = scope
        self._shop = shop = world.shop
        self._clean: Any = scope.recipe("clean", cost=_PRICES["clean"])(shop.clean)
        self._total: Any = scope.recipe("total", cost=_PRICES["total"])(shop.total)
        self._tills: Any = scope.recipe("tills", cost=_PRICES["tills"])(shop.tills)
        self._forecast: Any = scope.recipe("forecast", cost=_PRICES["forecast"])(shop.forecast)
        self._cleaned: dict[tuple[str, str, str], ml.Unit] = {}
        self._totals: list[ml.Unit] = []

    def close_day(self, day: str) -> None:
        """Read the feeds, clean what they say, add it up."""
        for branch, what in FEEDS:
            reading = self._scope.store(self._shop.read(branch, what, day), creator=f"tool:feed_{branch}")
            self._cleaned[branch, what, day] = self._clean(reading)
        self._totals.append(self._total(day, [self._cleaned[branch, "sales", day] for branch in ("north", "south")]))

    def conclude(self) -> None:
        """Tills, forecast and report."""
        visitors = [self._cleaned["south", "visitors", day] for day in DAYS]
        tills, forecast = self._tills(visitors), self._forecast(self._totals)
        text = self._shop.report(forecast.content, tills.content, [unit.content for unit in self._totals])
        grounds = [forecast, tills, *self._totals]
        self._scope.store(text, creator="reasoning", kind="report", depends_on=grounds)

    def write_again(self, step: ml.ModelStep) -> str:
        """What the model does with what a report rests on now. Like any model, it tells by the words what is what."""
        texts = [unit.content for unit in step.parents]
        [forecast], [tills] = ([text for text in texts if text.startswith(word)] for word in ("forecast", "tills"))
        totals = [text for day in DAYS for text in texts if text.startswith(f"total sales on {day}")]
        return self._shop.report(forecast, tills, totals)

    def order(self, forecast: ml.Unit) -> ml.ActionResult:
        """Order what the forecast says. The gate asks where that number comes from."""
        return self._scope.act("order_stock", {"pieces": f"{number_in(forecast.content):,}"}, justification=[forecast])


def results(shop: Shop) -> dict[str, str]:
    """Every step once, from the feeds on: name -> text. This is what redoing all of it costs."""
    readings = {(b, w, day): shop.read(b, w, day) for day in DAYS for b, w in FEEDS}
    cleaned = {key: shop.clean(text) for key, text in readings.items()}
    totals = {day: shop.total(day, [cleaned[b, "sales", day] for b in ("north", "south")]) for day in DAYS}
    tills = shop.tills([cleaned["south", "visitors", day] for day in DAYS])
    forecast = shop.forecast([*totals.values()])
    report = shop.report(forecast, tills, [*totals.values()])
    named = {f"reading {' '.join(key)}": text for key, text in readings.items()}
    named |= {f"clean {' '.join(key)}": text for key, text in cleaned.items()}
    named |= {f"total {day}": text for day, text in totals.items()}
    return {**named, "tills": tills, "forecast": forecast, "report": report}


class FlatPipeline:
    """The same with a list of texts. What the feed said is corrected in place; nothing says what was made of it."""

    def __init__(self, shop: Shop) -> None:
        self.memory = FlatMemory()
        self._texts = results(shop)
        for name, text in self._texts.items():
            self.memory.remember(text, name)

    def correct(self, branch: str, day: str, shop: Shop) -> int:
        """Read again what that branch said of that day; returns how many readings."""
        wrong = [(b, what) for b, what in FEEDS if b == branch]
        for b, what in wrong:
            name, text = f"reading {b} {what} {day}", shop.read(b, what, day)
            self.memory.replace(self._texts[name], text)
            self._texts[name] = text
        return len(wrong)

    def wrong(self, truth: dict[str, str]) -> list[str]:
        """What it still holds that is not so."""
        return [name for name, text in self._texts.items() if truth[name] != text]
