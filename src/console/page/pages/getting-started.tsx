/** Get started: an event, a flag, its evaluation, backups. Each step detects automatically when it is done. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Field, Segments } from "../components/fields.tsx";
import { Page } from "../components/page.tsx";
import { Badge, Button, CodeBlock, CopyButton, RelativeTime } from "../components/primitives.tsx";
import { queryString, request, serverAddress } from "../lib/api.ts";
import type { Backups, RefusedRequests } from "../lib/api-types.ts";
import { useForm } from "../lib/form.ts";
import { ago, dateTime } from "../lib/format.ts";
import { useResource } from "../lib/resource.ts";
import { to, useAddress } from "../lib/router.ts";
import { inProject, isAdmin, isOperator, markStartDone, project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { lazyMessages } from "../messages/later.ts";
import type { Flag } from "../model/flags.ts";
import { readFlags } from "../model/flags.ts";
import type { InstanceStatus } from "../model/instance.ts";
import { useLive } from "../model/live.ts";
import { snippets } from "../model/snippets.ts";
import { firstFilters } from "./flags/new-flag.tsx";

const w = messages.start;
const helpAfterMs = 60_000;
const firstEventMs = 2_000;
const rejectionsMs = 5_000;
const rejectionsShown = 5;
/** Every night at 03:00. */
const scheduleCommand = "flagkeep serve --backup-schedule '0 3 * * *'\n";

export function GettingStarted() {
  const { query, set } = useAddress();
  const [created, setCreated] = useState<Flag>();
  const all = snippets(
    serverAddress(),
    project.value?.api_token ?? "",
    created?.key ?? query.key ?? "new-checkout",
  );
  const sdk = query.sdk !== undefined && query.sdk in all ? query.sdk : "javascript";
  const live = useLive({}, false);
  const firstEvent = live.rows.findLast(({ event }) => event !== "$feature_flag_called");
  const requested = live.rows.findLast(
    ({ event, properties }) =>
      event === "$feature_flag_called" && (created === undefined || properties.$feature_flag === created.key),
  );
  const flags = useResource(`count of flags ${project.value?.id}`, (signal) =>
    readFlags({ limit: 1, order: "-last_called_at" }, signal),
  );
  const status = useResource<InstanceStatus>(isOperator.value ? "instance" : null, (signal) =>
    request("/api/instance/status/", { signal }),
  );
  const backups = useResource<Backups>(isOperator.value ? "backups" : null, (signal) =>
    request("/api/instance/backups/", { signal }),
  );
  const chosen = all[sdk]!;
  const isKnown = project.value?.ingested_event === true;
  // The session only has the state at the time the console was opened.
  const now = useResource<{ ingested_event?: boolean }>(
    isKnown ? null : `first event ${project.value?.id}`,
    (signal) => request(inProject(""), { signal }),
    firstEventMs,
  );
  const hadEvents = isKnown || now.data?.ingested_event === true;
  const lastBackup = status.data?.last_backup?.created_at;
  const hasFlags = created !== undefined || (flags.data?.count ?? 0) > 0;
  const evaluatedAt = flags.data?.results[0]?.last_called_at;
  const isEvaluated = requested !== undefined || (created === undefined && evaluatedAt != null);
  const nextBackup = backups.data?.next_at;
  const isAllDone =
    (hadEvents || firstEvent !== undefined) &&
    hasFlags &&
    isEvaluated &&
    (nextBackup != null || !isOperator.value);
  useEffect(() => {
    if (isAllDone) markStartDone();
  }, [isAllDone]);
  return (
    <Page title={messages.frame.pages.start}>
      <p class="muted">{w.intro}</p>
      <Step
        number={1}
        title={w.eventTitle}
        isDone={firstEvent !== undefined || hadEvents}
        result={
          <p class="row" role="status">
            {firstEvent ? (
              <>
                <Badge tone="good">●</Badge>
                <span>{w.arrived(firstEvent.event, firstEvent.distinct_id, ago(firstEvent.arrivedAt))}</span>
                <a href={to("events")}>{w.seeLive}</a>
              </>
            ) : (
              !hadEvents && (
                <>
                  <span class="waiting" aria-hidden="true" /> {w.waiting}
                </>
              )
            )}
          </p>
        }
      >
        <Segments
          label={w.sdk}
          value={sdk}
          choices={Object.entries(all).map(([name, { name: text }]) => [name, text] as const)}
          onChange={(name) => set({ sdk: name })}
        />
        <div class="row">
          <span class="label">{w.key}</span> <code>{project.value?.api_token}</code>
          <CopyButton text={project.value?.api_token ?? ""} />
        </div>
        {chosen.install && <CodeBlock label={w.sdk} code={chosen.install} />}
        <CodeBlock label={w.eventTitle} code={chosen.event} />
        {!firstEvent && !hadEvents && <Help curl={all.curl!.event} address={status.data?.url} />}
      </Step>
      <Step number={2} title={w.flagTitle} isDone={hasFlags}>
        {created ? (
          <p>
            <a href={to(`flags/${created.id}`)}>{created.key}</a>
          </p>
        ) : (
          <FirstFlag onCreated={setCreated} />
        )}
        {flags.data !== undefined && flags.data.count > 0 && !created && (
          <p class="muted">
            {w.flagsBefore(flags.data.count)} <a href={to("flags")}>{w.openFlags}</a>
          </p>
        )}
      </Step>
      <Step
        number={3}
        title={w.evaluatedTitle}
        isDone={isEvaluated}
        result={
          <p class="row" role="status">
            {requested ? (
              <>
                <Badge tone="good">●</Badge>
                {w.asked(String(requested.properties.$feature_flag_response), requested.distinct_id)}
              </>
            ) : isEvaluated ? (
              w.evaluated(ago(evaluatedAt!))
            ) : (
              <>
                <span class="waiting" aria-hidden="true" /> {w.waitingForEvaluation}
              </>
            )}
          </p>
        }
      >
        <CodeBlock label={w.evaluatedTitle} code={chosen.flag} />
      </Step>
      <Step number={4} title={w.protectTitle} isDone={isOperator.value && nextBackup != null}>
        {isOperator.value && (
          <>
            <h3>{w.schedule}</h3>
            {nextBackup != null ? (
              <p>{w.scheduled(dateTime(nextBackup))}</p>
            ) : (
              <>
                <p class="muted">{lazyMessages.instance.noSchedule}</p>
                <CodeBlock label={w.schedule} code={scheduleCommand} />
              </>
            )}
          </>
        )}
        <div class="row">
          <span>{lastBackup ? w.backupDone(ago(lastBackup)) : w.backupNever}</span>
          <Button
            href={to("instance", { tab: "backups" })}
            disabledReason={!isOperator.value && messages.frame.onlyOperators}
          >
            {w.createBackup}
          </Button>
          <Button
            href={to("settings", { tab: "team" })}
            disabledReason={!isAdmin.value && messages.frame.onlyAdmins}
          >
            {w.invite}
          </Button>
        </div>
      </Step>
    </Page>
  );
}

/** A step; when done it collapses and shows its result. */
function Step({
  number,
  title,
  isDone,
  result,
  children,
}: {
  number: number;
  title: string;
  isDone: boolean;
  result?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="card stack step">
      <details open={!isDone}>
        <summary class="row step-head">
          <span class={isDone ? "step-number done" : "step-number"} aria-hidden="true">
            {isDone ? "✓" : number}
          </span>
          <h2>{title}</h2>
          {isDone && <Badge tone="good">{w.done}</Badge>}
        </summary>
        <div class="stack">{children}</div>
      </details>
      {result}
    </section>
  );
}

function FirstFlag({ onCreated }: { onCreated: (flag: Flag) => void }) {
  const form = useForm(
    { key: "new-checkout", kind: "everybody" as "everybody" | "percentage" | "some" },
    async ({ key, kind }) => {
      const body = { key: key.trim(), active: true, filters: firstFilters(kind, 50) };
      onCreated(await request<Flag>(inProject("feature_flags/"), { method: "POST", body }));
    },
  );
  return (
    <form
      class="row bottom"
      onSubmit={(event) => {
        event.preventDefault();
        void form.submit();
      }}
    >
      <Segments
        label={messages.flags.create.kind}
        choices={(["everybody", "percentage", "some"] as const).map(
          (name) => [name, messages.flags.create.kinds[name]] as const,
        )}
        {...form.choice("kind")}
      />
      <Field label={w.flagKey} {...form.input("key")} error={form.error} isRequired />
      <Button kind="main" type="submit">
        {w.create}
      </Button>
    </form>
  );
}

type Rejection = RefusedRequests["results"][number];

/** Troubleshooting after a minute without an event. */
function Help({ curl, address }: { curl: string; address: string | null | undefined }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), helpAfterMs);
    return () => clearTimeout(timer);
  }, []);
  const warnings = useResource<{ results: { type: string; count: number }[] }>(
    isShown ? `warnings ${project.value?.id}` : null,
    (signal) => request(inProject(`ingestion_warnings/${queryString({})}`), { signal }),
  );
  const rejections = useResource<{ results: Rejection[] }>(
    isShown && isOperator.value ? "refusals" : null,
    (signal) => request("/api/instance/refusals/", { signal }),
    rejectionsMs,
  );
  if (!isShown) return null;
  return (
    <section class="stack tight" role="status">
      <h3>{w.helpTitle}</h3>
      {address && URL.canParse(address) && new URL(address).origin !== location.origin && (
        <p>{w.otherAddress(address)}</p>
      )}
      {w.help.map((line) => (
        <p key={line}>{line}</p>
      ))}
      <CodeBlock label="curl" code={curl} />
      {(rejections.data?.results.length ?? 0) > 0 && (
        <>
          <p>{w.rejectedTitle}</p>
          <ul class="changes">
            {rejections
              .data!.results.slice(0, rejectionsShown)
              .map(({ at, path, status, reason, client }, position) => (
                <li key={position}>
                  {w.rejected(status, reason ?? path, client)} · <RelativeTime at={at} />
                </li>
              ))}
          </ul>
        </>
      )}
      {(warnings.data?.results.length ?? 0) > 0 && (
        <>
          <p>{w.warningsTitle}</p>
          <ul class="changes">
            {warnings.data!.results.map(({ type, count }) => (
              <li key={type}>
                {type.replaceAll("_", " ")} × {count}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
