/** Status indicator of the layout: the server's state as a word and a color. */

import { computed, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, contactFailed, request } from "../lib/api.ts";
import { ago, decimal } from "../lib/format.ts";
import { oldestShown, useBackgroundResource } from "../lib/resource.ts";
import { isOperator } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { captureProblem, getWaiting, type InstanceStatus } from "../model/instance.ts";
import { Icon } from "./icons.tsx";

const w = messages.frame.health;
/** State of the server as last described. */
const health = signal<{ tone: string; word: string }>({ tone: "plain", word: "…" });
/** Whether the menu highlights the server page. */
export const isDegraded = computed(() => health.value.tone === "bad");
/** Time of the last response in ms, if the server is unreachable. */
const lostSince = signal<number | undefined>(undefined);
const readEveryMs = 6_000;
const retryMs = 2_000;
/** A server that accepts connections but does not respond counts as unreachable. */
const answerWithinMs = 3_000;
/** A single failure may be a restart. */
const failuresUntilLost = 2;
/** About what the pipeline applies in ten seconds. */
const behindEntries = 200_000;

export function Health() {
  const [isOpen, setOpen] = useState(false);
  const status = useBackgroundResource<InstanceStatus>(
    isOperator.value ? "health" : null,
    (signal) => probe("/api/instance/status/", signal),
    readEveryMs,
    retryMs,
  );
  const ready = useBackgroundResource<{ status: string }>(
    isOperator.value ? null : "readiness",
    (signal) => probe("/_readiness/", signal),
    readEveryMs,
    retryMs,
  );
  const source = isOperator.value ? status : ready;
  const [failures, setFailures] = useState(0);
  useEffect(() => {
    setFailures(source.failure === undefined || !isLost(source.failure) ? 0 : failures + 1);
  }, [source.failure, source.readAt]);
  const isUnavailable = failures >= failuresUntilLost;
  useEffect(() => {
    lostSince.value = isUnavailable ? (source.readAt > 0 ? source.readAt : Date.now()) : undefined;
  }, [isUnavailable]);
  // After a failed request of the page, do not wait for the next poll.
  useEffect(() => {
    if (contactFailed.value > 0 && failures === 0) source.reload();
  }, [contactFailed.value]);
  const { tone, word, facts } =
    describeFailure(source.failure, isUnavailable) ??
    (isOperator.value ? describe(status.data) : { tone: "good", word: ready.data?.status ?? "…", facts: [] });
  useEffect(() => {
    health.value = { tone, word };
  }, [tone, word]);
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
        <span class="health-word">{word}</span>
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

/** The state in words, in the menu of a narrow screen: its header has the dot alone. */
export function MenuHealth() {
  const { tone, word } = health.value;
  return (
    <p class={`menu-health health-dot narrow-only ${tone}`}>
      <span class="dot" aria-hidden="true" />
      <span>
        {w.label}: {word}
      </span>
    </p>
  );
}

const probe = <Answer,>(path: string, signal: AbortSignal) =>
  request<Answer>(path, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)]),
    isProbe: true,
  });

/** The server, or only a proxy in front of it, is unreachable; 503 and 429 are responses of the server. */
const isLost = ({ isPassing, status }: ApiError) => isPassing && status !== 503 && status !== 429;

/** A failed poll takes precedence over the last response. */
function describeFailure(failure: ApiError | undefined, isUnavailable: boolean) {
  if (failure === undefined) return undefined;
  if (isLost(failure))
    return {
      tone: isUnavailable ? "bad" : "warn",
      word: isUnavailable ? w.unreachable : w.reconnecting,
      facts: [],
    };
  return { tone: "warn", word: failure.isEngineUnavailable ? w.engineDown : w.unknown, facts: [] };
}

/** Bar under the header while the server is unreachable, with the age of the data on the page. */
export function LostBar() {
  const [, redraw] = useState(0);
  const since = lostSince.value;
  useEffect(() => {
    if (since === undefined) return;
    const timer = setInterval(() => redraw((count) => count + 1), retryMs);
    return () => clearInterval(timer);
  }, [since]);
  if (since === undefined) return null;
  return (
    <div class="bar bad lost" role="status">
      <Icon name="warning" />
      <span>
        {w.unreachable}. {messages.frame.stale(ago(oldestShown() ?? since))}
      </span>
    </div>
  );
}

function describe(status: InstanceStatus | undefined) {
  if (status === undefined) return { tone: "plain", word: "…", facts: [] };
  const waiting = getWaiting(status);
  const rate = w.rate(decimal(status.events_per_second));
  const { up: isEngineUp } = status.engine;
  const facts = [
    rate,
    w.waiting(waiting),
    isEngineUp ? w.engineUp : w.engineDown,
    status.last_backup?.created_at ? w.lastBackup(ago(status.last_backup.created_at)) : w.noBackup,
  ];
  if (!isEngineUp) return { tone: "bad", word: w.engineDown, facts };
  if (captureProblem(status)) return { tone: "bad", word: w.full, facts };
  if (status.given_up.length > 0) return { tone: "bad", word: w.degraded, facts };
  if (waiting > behindEntries) return { tone: "warn", word: w.behind, facts };
  // The rate of the whole server: Events shows that of its project.
  return { tone: "good", word: w.ready, facts };
}
