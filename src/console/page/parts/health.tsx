/** The dot of the frame: how the instance is, in a word and a colour. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { ask } from "../lib/api.ts";
import { ago, decimal } from "../lib/format.ts";
import { useAside } from "../lib/resource.ts";
import { isOperator } from "../lib/session.ts";
import { captureTrouble, type InstanceStatus, waitingOf } from "../model/instance.ts";
import { words } from "../words/index.ts";

const w = words.frame.health;
/** Whether the menu is to point at the page of the server. */
export const isInTrouble = signal(false);
const readEveryMs = 10_000;
/** What the pipeline applies in about ten seconds. */
const behindEntries = 200_000;

export function Health() {
  const [isOpen, setOpen] = useState(false);
  const status = useAside<InstanceStatus>(
    isOperator.value ? "health" : null,
    (signal) => ask("/api/instance/status/", { signal }),
    readEveryMs,
  );
  const ready = useAside<{ status: string }>(
    isOperator.value ? null : "readiness",
    (signal) => ask("/_readiness/", { signal }),
    readEveryMs,
  );
  const { tone, word, facts } = isOperator.value
    ? describe(status.data, status.failure !== undefined)
    : {
        tone: ready.failure ? (ready.failure.isEngineAway ? "warn" : "bad") : "good",
        word: ready.failure
          ? ready.failure.isEngineAway
            ? w.engineDown
            : w.unknown
          : (ready.data?.status ?? "…"),
        facts: [],
      };
  useEffect(() => {
    isInTrouble.value = tone === "bad";
  }, [tone]);
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

function describe(status: InstanceStatus | undefined, hasFailed: boolean) {
  if (status === undefined)
    return { tone: hasFailed ? "warn" : "plain", word: hasFailed ? w.unknown : "…", facts: [] };
  const waiting = waitingOf(status);
  const rate = w.rate(decimal(status.events_per_second));
  const { up: isEngineUp } = status.engine;
  const facts = [
    rate,
    w.waiting(waiting),
    isEngineUp ? w.engineUp : w.engineDown,
    status.last_backup?.created_at ? w.lastBackup(ago(status.last_backup.created_at)) : w.noBackup,
  ];
  if (!isEngineUp) return { tone: "bad", word: w.engineDown, facts };
  if (captureTrouble(status)) return { tone: "bad", word: w.full, facts };
  if (status.given_up.length > 0) return { tone: "bad", word: w.trouble, facts };
  if (waiting > behindEntries) return { tone: "warn", word: w.behind, facts };
  return { tone: "good", word: rate, facts };
}
