"""What a config is made of: sections that know their keys, and adapters by name."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class Section(BaseModel):
    """Base of all parts: frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Adapter(Section):
    """An adapter by name, with its own parameters. In YAML the bare name will do."""

    name: str = Field(description="Name in its registry.")
    params: dict[str, Any] = Field(default={}, description="The adapter's own parameters.")

    @property
    def label(self) -> str:
        """What people call it: its parameter `name`, where it has one, else the adapter's name."""
        return str(self.params.get("name") or self.name)

    @property
    def model(self) -> str:
        """The model that its parameters name; empty where they name none."""
        return str(self.params.get("name") or self.params.get("model") or "")


def _bare_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


AdapterField = Annotated[Adapter, BeforeValidator(_bare_name)]


def _unique(value: tuple[Adapter, ...]) -> tuple[Adapter, ...]:
    seen = [adapter.model_dump_json() for adapter in value]
    if len(set(seen)) != len(seen):
        raise ValueError("the same adapter with the same parameters is listed twice")
    return value


Adapters = Annotated[tuple[AdapterField, ...], AfterValidator(_unique)]
