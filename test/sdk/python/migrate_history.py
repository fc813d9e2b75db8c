"""Loads a history with the real posthog package, default batching; its clock may be wrong by so many seconds."""

import sys
from datetime import datetime, timedelta

import posthog.request
from posthog import Posthog

url, token, clock_off, time, prefix = sys.argv[1:6]


class Clock(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(seconds=float(clock_off))


posthog.request.datetime = Clock
failures = []
client = Posthog(
    token,
    host=url,
    historical_migration=True,
    max_queue_size=10_000,
    on_error=lambda error, batch: failures.append(str(error)),
)
for step in range(5):
    for user in range(200):
        client.capture(
            "$identify",
            distinct_id=f"{prefix}-{user}",
            properties={"$set": {"step": step, f"step_{step}": True}},
            timestamp=datetime.fromisoformat(time),
        )
client.shutdown()
print("\n".join(failures))
