/** Creates, verifies, downloads and deletes backups. Restoring is only on the command line. */

import { useEffect, useState } from "preact/hooks";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Properties } from "../../components/event-details.tsx";
import { Badge, Button, CodeBlock, RelativeTime } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import type { Backup, Backups as BackupList, BackupJob as Job } from "../../lib/api-types.ts";
import { dateTime, number, size } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { serverPath } from "../../lib/server.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.instance;
const pollMs = 700;
const idleMs = 15_000;

/** The counts in the command's output, and the size of each part. */
function getCounts({ parts, ...facts }: Record<string, unknown>): [string, string][] {
  const counts = Object.entries(facts).filter(
    ([name, value]) => name !== "bytes" && typeof value === "number",
  );
  return [
    ...counts.map(([name, value]): [string, string] => [name.replaceAll("_", " "), number(value as number)]),
    ...((parts ?? []) as { name: string; bytes: number }[]).map(({ name, bytes }): [string, string] => [
      name,
      size(bytes),
    ]),
  ];
}

export function Backups({ onDone }: { onDone: () => void }) {
  const [job, setJob] = useState<Job>();
  const [restoring, setRestoring] = useState<Backup>();
  const [verified, setVerified] = useState<Job>();
  const [deleting, setDeleting] = useState<Backup>();
  const list = useResource<BackupList>(
    "backups",
    (signal) => request("/api/instance/backups/", { signal }),
    idleMs,
  );
  const running = job ?? list.data?.jobs.find(({ state }) => state === "running");

  useEffect(() => {
    if (running?.state !== "running") return;
    const timer = setTimeout(() => {
      request<Job>(`/api/instance/backups/jobs/${running.id}/`).then(
        (found) => {
          setJob(found.state === "running" ? found : undefined);
          if (found.state === "running") return;
          if (found.state === "done" && found.kind === "verify") setVerified(found);
          else if (found.state === "done") toast(w.jobDone[found.kind] ?? found.kind);
          else toastError(w.jobFailed(found.error ?? ""));
          list.reload();
          onDone();
        },
        (error) => {
          setJob(undefined);
          toastError(error);
        },
      );
    }, pollMs);
    return () => clearTimeout(timer);
  }, [running]);

  const start = (path: string) => {
    request<Job>(`/api/instance/backups/${path}`, { method: "POST" }).then(setJob, toastError);
  };
  const download = async ({ name }: Backup) => {
    try {
      const { url } = await request<{ url: string }>(
        `/api/instance/backups/${encodeURIComponent(name)}/ticket/`,
        {
          method: "POST",
        },
      );
      location.assign(serverPath + url);
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.backups}</h2>
        <Button kind="main" isDisabled={running !== undefined} onClick={() => start("")}>
          {w.backUpNow}
        </Button>
      </div>
      {running && (
        <div class="stack tight" role="status">
          <span>
            {w.job[running.kind] ?? running.kind} {running.step}
          </span>
          <progress
            aria-label={w.job[running.kind] ?? running.kind}
            {...(running.total > 0 ? { max: running.total, value: running.done } : {})}
          />
        </div>
      )}
      <Content resource={list} rows={3}>
        {({ destination, results, next_at: next }) => (
          <>
            <p class="help">
              {w.destination(destination)} · {next ? w.next(dateTime(next)) : w.noSchedule}
            </p>
            {results.length === 0 ? (
              <Empty title={w.backupsEmpty} icon="instance" command="flagkeep backup create">
                <p class="muted">{w.backupsEmptyHelp}</p>
              </Empty>
            ) : (
              <ul class="lines">
                {results.map((backup) => (
                  <li key={backup.name} class="row apart">
                    <span>
                      <b>
                        <RelativeTime at={backup.created_at} />
                      </b>{" "}
                      <span class="muted number">
                        {size(backup.bytes)}
                        {backup.events !== null &&
                          ` · ${number(backup.events)} ${w.columns.events.toLowerCase()}`}
                      </span>{" "}
                      <Badge tone={backup.verified ? "good" : "bad"}>
                        {backup.verified ? w.verified : (backup.problem ?? "")}
                      </Badge>
                    </span>
                    <span class="row">
                      <Button
                        isDisabled={running !== undefined}
                        onClick={() => start(`${encodeURIComponent(backup.name)}/verify/`)}
                      >
                        {w.verify}
                      </Button>
                      <Button icon="download" onClick={() => void download(backup)}>
                        {w.download}
                      </Button>
                      <Button onClick={() => setRestoring(backup)}>{w.restore}</Button>
                      <Button
                        kind="quiet"
                        icon="trash"
                        label={`${messages.frame.delete} ${backup.name}`}
                        onClick={() => setDeleting(backup)}
                      />
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </Content>
      {restoring && (
        <Dialog title={w.restoreTitle} size="large" onClose={() => setRestoring(undefined)}>
          <p>{w.restoreHelp}</p>
          <CodeBlock label={w.restore} code={restoring.restore_command} />
        </Dialog>
      )}
      {verified && (
        <Dialog title={w.jobDone.verify!} onClose={() => setVerified(undefined)}>
          <p class="muted">{w.compared}</p>
          <Properties entries={getCounts(verified.result ?? {})} />
        </Dialog>
      )}
      {deleting && (
        <ConfirmDialog
          title={w.deleteTitle}
          text={deleting.name}
          action={messages.frame.delete}
          onClose={() => setDeleting(undefined)}
          onYes={() => {
            request(`/api/instance/backups/${encodeURIComponent(deleting.name)}/`, { method: "DELETE" }).then(
              () => {
                list.reload();
                onDone();
              },
              toastError,
            );
          }}
        />
      )}
    </section>
  );
}
