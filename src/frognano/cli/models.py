"""Which policy a command uses: a chat endpoint or a checkpoint in this process. Opened here, the same for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frognano.cli.errors import InputError
from frognano.config.environment import secret
from frognano.records import Record

if TYPE_CHECKING:
    from frognano.policy.contract import Policy


class ModelChoice(Record):
    """What the user said about the model."""

    base_url: str = ""
    model: str = ""
    checkpoint: str = ""
    api_key_env: str = ""

    def check(self) -> None:
        """Raise InputError unless exactly one kind of model was chosen, completely."""
        if self.checkpoint and (self.base_url or self.model):
            raise InputError("give either --checkpoint, or --base-url with --model, not both")
        if self.checkpoint and self.api_key_env:
            raise InputError("--api-key-env belongs to --base-url; a checkpoint needs no key")
        if not self.checkpoint and not (self.base_url and self.model):
            raise InputError(
                "no model: give --base-url URL --model NAME for a chat endpoint, or --checkpoint DIR "
                "(--checkpoint tadpole is the bundled one)"
            )
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise InputError(f"--base-url {self.base_url}: must begin with http:// or https://")


def open_policy(choice: ModelChoice) -> Policy:
    """The policy, not yet entered. Raises InputError, ConfigError."""
    choice.check()
    if choice.checkpoint:
        raise NotImplementedError
    key = secret(choice.api_key_env) if choice.api_key_env else ""
    from frognano.policy.endpoint import EndpointPolicy

    return EndpointPolicy(choice.base_url, choice.model, api_key=key)
