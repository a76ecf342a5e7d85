"""Which policy a command uses: a chat endpoint or a checkpoint in this process. Opened here, the same for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frognano.cli.errors import InputError
from frognano.config.environment import secret
from frognano.records import Record

if TYPE_CHECKING:
    from frognano.policy.contract import Policy


LARGE_BYTES = 2 << 30
"""Checkpoints above this are computed in bfloat16, so that a laptop's memory holds them."""


class ModelChoice(Record):
    """What the user said about the model."""

    base_url: str = ""
    model: str = ""
    checkpoint: str = ""
    api_key_env: str = ""
    retries: int | None = None
    """Further attempts after a passing failure of the endpoint; None leaves the default."""

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
    """The policy, not yet entered; a checkpoint is loaded here. Raises InputError, ConfigError."""
    choice.check()
    if choice.checkpoint:
        return _from_checkpoint(choice.checkpoint)
    key = secret(choice.api_key_env) if choice.api_key_env else ""
    from frognano.config.endpoint import EndpointSettings
    from frognano.policy.endpoint import EndpointPolicy

    settings = EndpointSettings() if choice.retries is None else EndpointSettings(retries=choice.retries)
    return EndpointPolicy(choice.base_url, choice.model, key, settings)


def _from_checkpoint(name: str) -> Policy:
    import torch

    from frognano.policy.chat import ChatFormat
    from frognano.policy.checkpoint import checkpoint_folder, load_model
    from frognano.policy.engine import TorchEngine
    from frognano.policy.token_policy import TokenPolicy

    folder = checkpoint_folder(name)
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    loaded = load_model(name, torch.bfloat16 if size > LARGE_BYTES else torch.float32)
    return TokenPolicy(TorchEngine(loaded.model), ChatFormat(loaded.tokenizer), folder.name)
