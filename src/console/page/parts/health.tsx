/** The dot of the frame: how the instance is, in a word and a colour. */

import { useState } from "preact/hooks";
import { ask } from "../lib/api.ts";
import { ago, decimal } from "../lib/format.ts";
import { useResource } from "../lib/resource.ts";
import { isOperator } from "../lib/session.ts";
import { words } from "../words/index.ts";

const w = words.frame.health;
const readEveryMs = 10_000;
const behindSeconds = 10;

/** The parts of the instance's status that the dot needs. */
interface ShortStatus {
  state?: string;
  events_per_second?: number;
  engine?: { running?: boolean };
  lag_seconds?: number;
  last_backup?: { at?: string } | null;
}

export function Health() {
  const [isOpen, setOpen] = useState(false);
  const status = useResource<ShortStatus>(
    isOperator.value ? "health" : null,
    (signal) => ask("/api/instance/status/", { signal }),
    readEveryMs,
  );
  const ready = useResource<{ status: string }>(
    isOperator.value ? null : "readiness",
    (signal) => ask("/_readiness/", { signal }),
    readEveryMs,
  );
  const { tone, word, facts } = isOperator.value
    ? describe(status.data, status.failure !== undefined)
    : {
        tone: ready.failure ? "bad" : "good",
        word: ready.failure ? w.unknown : (ready.data?.status ?? "…"),
        facts: [],
      };
  return (
    <div class="health">
      <button
        type="button"
        class={`health-dot ${tone}`}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        onBlur={() => setOpen(false)}
      >
        <span class="unseen">{w.label}: </span>
        <span class="dot" aria-hidden="true" />
        <span>{word}</span>
      </button>
      {isOpen && facts.length > 0 && (
        <ul class="menu-list facts">
          {facts.map((fact) => (
            <li key={fact}>{fact}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function describe(status: ShortStatus | undefined, hasFailed: boolean) {
  if (status === undefined)
    return { tone: hasFailed ? "warn" : "plain", word: hasFailed ? w.unknown : "…", facts: [] };
  const lag = status.lag_seconds ?? 0;
  const isEngineUp = status.engine?.running !== false;
  const rate = status.events_per_second;
  const facts = [
    ...(rate === undefined ? [] : [w.rate(decimal(rate))]),
    w.lag(lag),
    isEngineUp ? w.engineUp : w.engineDown,
    status.last_backup?.at ? w.lastBackup(ago(status.last_backup.at)) : w.noBackup,
  ];
  if (!isEngineUp) return { tone: "bad", word: w.engineDown, facts };
  if (lag > behindSeconds) return { tone: "warn", word: w.behind, facts };
  return { tone: "good", word: rate === undefined ? w.ready : w.rate(decimal(rate)), facts };
}
