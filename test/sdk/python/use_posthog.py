"""Uses the real posthog package against a running server and prints what it saw as one JSON object."""

import json
import logging
import sys
from datetime import datetime, timedelta, timezone

from posthog import Posthog
from posthog.version import VERSION

url, token, personal_key = sys.argv[1:4]
problems = []


class Notes(logging.Handler):
    def emit(self, record):
        text = record.getMessage()
        if record.levelno >= logging.WARNING and "Multiple active PostHog clients" not in text:
            problems.append(text)


logging.getLogger("posthog").addHandler(Notes())


def client(**options):
    options = {"on_error": lambda error, batch: problems.append(str(error)), "max_retries": 0, **options}
    return Posthog(token, host=url, **options)


seen = {"version": VERSION}

plain = client()
plain.capture("python capture", distinct_id="py", properties={"nested": {"a": [1, None]}}, groups={"company": "py-co"})
plain.set(distinct_id="py", properties={"plan": "pro", "seen": 1})
plain.set(distinct_id="py", properties={"seen": 2})
plain.set_once(distinct_id="py", properties={"first": 1})
plain.set_once(distinct_id="py", properties={"first": 2})
plain.alias(previous_id="py", distinct_id="py-alias")
plain.group_identify("company", "py-co", {"size": 7})
plain.capture(
    "python timestamp", distinct_id="py", timestamp=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))
)
plain.flush()

packed = client(gzip=True)
for number in range(50):
    packed.capture("python packed", distinct_id="py", properties={"number": number})
packed.flush()

history = client(historical_migration=True)
for number in range(20):
    history.capture(
        "python history",
        distinct_id="py-old",
        properties={"number": number},
        timestamp=datetime(2021, 5, 6, 7, 8, 9, tzinfo=timezone.utc) + timedelta(minutes=number),
    )
history.shutdown()

with_groups = {"groups": {"company": "acme"}}
as_pro = {"person_properties": {"plan": "pro"}}
seen["remote"] = {
    "enabled": plain.feature_enabled("always", "py-flags"),
    "disabled": plain.feature_enabled("never", "py-flags"),
    "unknown": plain.feature_enabled("no such flag", "py-flags"),
    "variant": plain.get_feature_flag("variants", "py-flags"),
    "payload": plain.get_feature_flag_payload("always", "py-flags"),
    "property": plain.get_feature_flag("pro-plan", "py-flags", **as_pro),
    "group": plain.get_feature_flag("large-company", "py-flags", **with_groups),
    "all": plain.get_all_flags("py-flags"),
}

near = client(personal_api_key=personal_key, poll_interval=3600)
near.load_feature_flags()
near.load_feature_flags()
size = {"group_properties": {"company": {"size": "500"}}}
seen["differences"] = []
for number in range(60):
    distinct_id = f"person-{number}"
    asked = {**with_groups, **size, "person_properties": {"plan": "pro" if number % 2 == 0 else "free"}}
    local = near.get_all_flags(distinct_id, only_evaluate_locally=True, **asked)
    local.pop("switched-off", None)
    remote = plain.get_all_flags(distinct_id, **asked)
    if local != remote:
        seen["differences"].append([distinct_id, local, remote])
seen["local_payload"] = near.get_feature_flag_payload("always", "py-flags", only_evaluate_locally=True)
seen["remote_config"] = near.get_remote_config_payload("settings")

for one in (plain, packed, near):
    one.shutdown()
seen["problems"] = list(problems)

wrong = client(personal_api_key="phx_wrong", poll_interval=3600)
seen["with_wrong_key"] = wrong.feature_enabled("always", "py-flags")
wrong.shutdown()
seen["problems_with_wrong_key"] = problems[len(seen["problems"]) :]
print(json.dumps(seen))
