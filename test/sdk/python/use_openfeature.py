"""Uses the official OFREP provider against a running server and prints what it saw as one JSON object."""

import json
import sys

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

url, token = sys.argv[1:3]
api.set_provider(OFREPProvider(base_url=url, headers_factory=lambda: {"Authorization": f"Bearer {token}"}))
client = api.get_client()


def seen(details):
    return {
        "value": details.value,
        "variant": details.variant,
        "reason": details.reason,
        "error": details.error_code,
        "metadata": dict(details.flag_metadata),
    }


def boolean(key, default, **attributes):
    return seen(client.get_boolean_details(key, default, EvaluationContext("ann", attributes)))


print(
    json.dumps(
        {
            "always": boolean("always", False),
            "never": boolean("never", True),
            "off": boolean("switched-off", True),
            "pro": boolean("pro-plan", False, plan="pro"),
            "free": boolean("pro-plan", True, plan="free"),
            "group": boolean("large-company", False, groups={"company": "acme"}),
            "for servers": boolean("for-servers", False),
            "for browsers": boolean("for-browsers", False),
            "unknown": boolean("nothing", True),
            "wrong type": seen(client.get_string_details("always", "x", EvaluationContext("ann"))),
            "variants": [
                seen(client.get_string_details("variants", "default", EvaluationContext(f"u{i}"))) for i in range(40)
            ],
        }
    )
)
