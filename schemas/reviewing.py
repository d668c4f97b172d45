"""The config of review: who decides between the finalists of a source, and how answers become a decision."""

from typing import Annotated, Final, Self

from pydantic import Field, StringConstraints, model_validator

from schemas.sections import Adapter, AdapterField, Section

# Days that a presigned address lasts at most (AWS Signature Version 4).
LONGEST: Final = 7.0
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$")]


class ReviewMeasure(Section):
    """Who decides between the finalists."""

    board: AdapterField = Field(default=Adapter(name="auto"))


class ReviewCut(Section):
    """How opinions become a decision."""

    keep_per_source: int = Field(default=1, ge=1, description="Ground truths per source, at most.")
    annotators: tuple[Name, ...] = Field(
        default=("ann1", "ann2", "ann3"), description="Who is asked and counts: accounts by the part before the @."
    )
    former: tuple[Name, ...] = Field(default=(), description="Who is asked no more, and still counts.")
    sample: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the sources that people decide; of the others the best rank is taken at once (`auto`).",
    )
    sample_seed: int = Field(default=0, ge=0, description="Draws the sample, source by source.")
    votes: int = Field(default=3, ge=1, description="Answers per source; more than half of them decide.")
    adjudicators: tuple[Name, ...] = Field(
        default=(), description="Who decides where there is no majority; without anybody, such a source is dropped."
    )

    @model_validator(mode="after")
    def _everybody_has_one_part(self) -> Self:
        names = [*self.annotators, *self.former, *self.adjudicators]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice[0]} stands twice among annotators, former and adjudicators")
        return self


class Review(Section):
    """Human or automatic review."""

    measure: ReviewMeasure = ReviewMeasure()
    cut: ReviewCut = ReviewCut()
    enough: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of the sources in review that must be decided before a build publishes; 0: any.",
    )
    gold: float = Field(
        default=0.05,
        ge=0,
        le=0.5,
        description="Share of the sources beside which annotators get a gold task, whose answer is known; ours.",
    )
    gold_pass: float = Field(
        default=0.8, ge=0, le=1, description="Share of gold tasks below which an annotator is named; ours."
    )
    audit: float = Field(
        default=0.05,
        ge=0,
        le=0.5,
        description="Share of the automatically rejected candidates (of sources that people look at) that they are "
        "asked about as well, so that it is known what was lost; decides nothing; ours.",
    )
    address_days: float = Field(
        default=LONGEST,
        ge=0.01,
        le=LONGEST,
        description="Days for which annotators' addresses of a bucket's pictures last, at most those of a signature; "
        "`review open` renews those of open tasks when less than half of it is left; ours.",
    )
    max_error: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="With a sample: nothing is published where people find the best rank wrong more often; 1: never "
        "stops.",
    )

    @property
    def asks_people(self) -> bool:
        """Whether people choose between the finalists, and not a rule."""
        return self.measure.board.name == "label_studio"
