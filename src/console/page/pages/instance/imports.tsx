/** Imports of past events: uploads a file in parts; shows progress of the background load; cancels and resumes. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Badge, Button, RelativeTime } from "../../components/primitives.tsx";
import { Empty, ResourceList } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request, send } from "../../lib/api.ts";
import type { Import } from "../../lib/api-types.ts";
import { download } from "../../lib/csv.ts";
import { useResource } from "../../lib/resource.ts";
import { projects } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { formatProgress, importPath, isBusy } from "./import-progress.ts";
import { ImportRejects } from "./import-rejects.tsx";
import { ImportSummaryView } from "./import-summary.tsx";
import { SendFile } from "./send-file.tsx";

const w = lazyMessages.instance.imports;
const busyMs = 1_000;
const idleMs = 15_000;

const tones = { done: "good", failed: "bad", cancelled: "warn", interrupted: "warn" } as const;

/** @param onDone called when the last running import has ended. */
export function Imports({ onDone }: { onDone: () => void }) {
  const [isSending, setSending] = useState(false);
  const [isAnyBusy, setAnyBusy] = useState(false);
  const list = useResource<{ results: Import[] }>(
    "imports",
    async (signal) => {
      const found = await request<{ results: Import[] }>("/api/instance/imports/", { signal });
      setAnyBusy(found.results.some(isBusy));
      return found;
    },
    isAnyBusy ? busyMs : idleMs,
  );
  const wasBusy = useRef(false);
  useEffect(() => {
    if (wasBusy.current && !isAnyBusy) onDone();
    wasBusy.current = isAnyBusy;
  }, [isAnyBusy]);
  const act = (work: Promise<unknown>) => work.then(list.reload, toastError);
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.title}</h2>
        <Button icon="plus" onClick={() => setSending(true)}>
          {w.add}
        </Button>
      </div>
      <ResourceList
        resource={list}
        rows={2}
        empty={
          <Empty title={w.empty} icon="download" command="flagkeep import FILE">
            <p class="muted">{w.help}</p>
          </Empty>
        }
      >
        {(run) => (
          <li key={run.id} class="stack tight">
            <div class="row apart">
              <span>
                <b>{run.name}</b>{" "}
                <Badge tone={tones[run.state as keyof typeof tones] ?? "plain"}>
                  {w.states[run.state] ?? run.state}
                </Badge>{" "}
                {run.dry_run && <Badge>{w.dryRun}</Badge>}{" "}
                <span class="muted">
                  {projects.value.find(({ id }) => id === run.project_id)?.name} ·{" "}
                  <RelativeTime at={run.created_at} />
                </span>
              </span>
              <span class="row">
                {run.progress.rejected > 0 && (
                  <Button icon="download" onClick={() => void fetchRejects(run)}>
                    {w.rejects}
                  </Button>
                )}
                {(run.state === "running" || run.state === "waiting") && (
                  <Button onClick={() => void act(request(importPath(run, "cancel/"), { method: "POST" }))}>
                    {messages.frame.cancel}
                  </Button>
                )}
                {run.origin === "upload" &&
                  (!isBusy(run) || run.state === "uploading") &&
                  // A failed check would fail again.
                  (run.dry_run ? run.state !== "failed" : run.state !== "done") && (
                    <Button
                      onClick={() =>
                        void act(
                          request(importPath(run, "start/"), { method: "POST", body: { dry_run: false } }),
                        )
                      }
                    >
                      {run.dry_run ? w.load : w.resume}
                    </Button>
                  )}
                {run.origin === "upload" && (
                  <Button
                    kind="quiet"
                    icon="trash"
                    label={`${w.remove} ${run.name}`}
                    onClick={() => void act(request(importPath(run), { method: "DELETE" }))}
                  />
                )}
              </span>
            </div>
            <span class="muted number">{formatProgress(run)}</span>
            {run.state === "running" && (
              <progress
                aria-label={run.name}
                {...(run.progress.total_bytes
                  ? { max: run.progress.total_bytes, value: run.progress.bytes }
                  : {})}
              />
            )}
            {run.error && <p class="error">{run.error}</p>}
            {run.summary && <ImportSummaryView summary={run.summary} />}
            {/* A dry run counts reasons and keeps no records. */}
            {run.progress.rejected > 0 && !run.dry_run && !isBusy(run) && (
              <ImportRejects name={run.name} path={importPath(run, "rejects/")} />
            )}
          </li>
        )}
      </ResourceList>
      {isSending && (
        <SendFile
          onClose={() => setSending(false)}
          onDone={() => {
            setSending(false);
            setAnyBusy(true);
            list.reload();
          }}
        />
      )}
    </section>
  );
}

/** A plain link would not work: the session requires the page's own header. */
async function fetchRejects(run: Import): Promise<void> {
  try {
    const answer = await send(importPath(run, "rejects/"), { accept: "application/x-ndjson" });
    download(`${run.name}.rejected.ndjson`, await answer.blob());
  } catch (error) {
    toastError(error);
  }
}
