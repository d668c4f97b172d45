"""What a trial of a panel came to, as plain values: what the verb prints, the page shows and JSON holds."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from schemas.config import BuildConfig
from schemas.paper_accuracy import paper_accuracy
from tasks.accuracy.sub_panels import PanelsOfSize, sub_panels
from tasks.accuracy.tally import Tally, VoterScore
from tasks.accuracy.trials import Trial, Tried
from tasks.editors import EDITORS
from tasks.engine.account import Bought


@dataclass(frozen=True)
class Shown:
    """The panel on one kind of pictures.

    Attributes:
        what: "labelled photos" or "planted edits".
        pictures: How many, all with every voter's answer or abstention.
        truths: How many show each expression.
        voters: Every voter's score.
        panels: Every size of panel among them.
    """

    what: str
    pictures: int
    truths: dict[str, int]
    voters: tuple[VoterScore, ...]
    panels: tuple[PanelsOfSize, ...]

    @classmethod
    def of(cls, what: str, tally: Tally) -> "Shown":
        return cls(what, len(tally), tally.truths(), tuple(tally.voters()), tuple(sub_panels(tally)))

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        told = {"what": self.what, "pictures": self.pictures, "truths": self.truths}
        voters, panels = [one.plain() for one in self.voters], [one.plain() for one in self.panels]
        return told | {"voters": voters, "sub_panels": panels}


@dataclass(frozen=True)
class Findings:
    """All of it.

    Attributes:
        trial, tried: What was tried and what came of it.
        shown: The panel on photos and, where edits were planted, on these.
        bought: The answers from outside that it rests on, and their cost.
    """

    trial: Trial
    tried: Tried
    shown: tuple[Shown, ...]
    bought: tuple[Bought, ...]

    @classmethod
    def of(cls, trial: Trial, tried: Tried, bought: Sequence[Bought]) -> "Findings":
        kinds = [("labelled photos", tried.photos), ("planted edits", tried.edits)]
        shown = tuple(Shown.of(what, tally) for what, tally in kinds if len(tally))
        return cls(trial, tried, shown, tuple(bought))

    @property
    def dollars(self) -> float | None:
        """What the answers cost, whenever they were bought; None where one has no known price, 0 without any."""
        return None if any(one.unpriced for one in self.bought) else sum(one.dollars for one in self.bought)

    @property
    def dollars_per_picture(self) -> float | None:
        """What the votes cost over the pictures that they are on; None if unknown. Making the pictures is not in it."""
        votes = [one for one in self.bought if one.role == "voter"]
        pictures = sum(one.pictures for one in self.shown)
        if not pictures or any(one.unpriced for one in votes):
            return None
        return sum(one.dollars for one in votes) / pictures

    @property
    def notices(self) -> list[str]:
        """What a reader must know before quoting a number."""
        told = []
        config = self.trial.config
        if self.trial.planted:
            editor = config.generate.measure.editor.label
            told.append(
                f"A planted edit shows what the editor '{editor}' was asked for, not what it achieved: a weak edit "
                "counts against the voters."
            )
            if tuned(config):
                told.append(f"'{editor}' was tuned while looking at voters of this panel: no number here is quality.")
        if self.tried.unreached:
            count = self.tried.unreached.total()
            told.append(f"On {count} pictures a voter could not be reached; they count nowhere. Run it again.")
        return told

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        trial, tried, verdicts = self.trial, self.tried, self.tried.verdicts
        return {
            "planted": trial.planted,
            "pools": [spec.name for spec in trial.config.pools],
            "sources": {"listed": trial.listed, "labelled": trial.labelled, "tried": len(trial.sources)},
            "unreadable": dict(tried.unreadable),
            "edits_not_made": dict(tried.unmade),
            "unreached": dict(tried.unreached),
            "notices": self.notices,
            "shown": [one.plain() for one in self.shown],
            "verdict": [table.plain() for table in verdicts.tables] if verdicts else None,
            "fallen": {str(case): dict(why) for case, why in verdicts.reasons.items()} if verdicts else None,
            "cost": {
                "dollars": self.dollars,
                "dollars_per_picture": self.dollars_per_picture,
                "models": [asdict(one) for one in self.bought],
            },
            "published": paper_accuracy().model_dump(mode="json"),
        }


def tuned(config: BuildConfig) -> bool:
    """Whether the editor was tuned against a voter of the panel."""
    against = EDITORS.adapter_class(config.generate.measure.editor.name).tuned_against
    return any(voter.name in against for voter in config.verify.measure.panel)
