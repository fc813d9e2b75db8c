/** Imports of events of the past: a file is sent in parts, loaded in the background, watched, cancelled, gone on with. */

import { useState } from "preact/hooks";
import { ask, queryText, send, wordsOf } from "../../lib/api.ts";
import { download } from "../../lib/csv.ts";
import { duration, number, percent, size } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project, projects } from "../../lib/session.ts";
import { Badge, Button, When } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Checkbox, FileField, Select } from "../../parts/fields.tsx";
import { Content, Empty } from "../../parts/states.tsx";
import { complain, tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";

const w = words.instance.imports;
const busyMs = 1_000;
const idleMs = 15_000;
/** Below the limit that bodies have by themselves. */
const partBytes = 8_000_000;

interface Import {
  id: string;
  project_id: number;
  name: string;
  origin: string;
  state: keyof typeof w.states;
  dry_run: boolean;
  created_at: string;
  received_bytes: number;
  progress: {
    records: number;
    bytes: number;
    total_bytes: number | null;
    records_per_second: number;
    seconds_left: number | null;
    rejected: number;
  };
  error: string | null;
}

const isBusy = ({ state }: Import) => state === "running" || state === "waiting" || state === "uploading";
const tones = { done: "good", failed: "bad", cancelled: "warn", interrupted: "warn" } as const;
const pathOf = ({ project_id: id, ...run }: Import, rest = "") =>
  `/api/projects/${id}/imports/${run.id}/${rest}`;

export function Imports() {
  const [isSending, setSending] = useState(false);
  const [isAnyBusy, setAnyBusy] = useState(false);
  const list = useResource<{ results: Import[] }>(
    "imports",
    async (signal) => {
      const found = await ask<{ results: Import[] }>("/api/instance/imports/", { signal });
      setAnyBusy(found.results.some(isBusy));
      return found;
    },
    isAnyBusy ? busyMs : idleMs,
  );
  const act = (work: Promise<unknown>) => work.then(list.reload, (error) => complain(wordsOf(error)));
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.title}</h2>
        <Button icon="plus" onClick={() => setSending(true)}>
          {w.add}
        </Button>
      </div>
      <Content of={list} rows={2}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty title={w.empty} icon="download" command="flagkeep import FILE">
              <p class="muted">{w.help}</p>
            </Empty>
          ) : (
            <ul class="lines">
              {results.map((run) => (
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
                        <When at={run.created_at} />
                      </span>
                    </span>
                    <span class="row">
                      {run.progress.rejected > 0 && (
                        <Button icon="download" onClick={() => void fetchRejects(run)}>
                          {w.rejects}
                        </Button>
                      )}
                      {(run.state === "running" || run.state === "waiting") && (
                        <Button onClick={() => void act(ask(pathOf(run, "cancel/"), { method: "POST" }))}>
                          {words.frame.cancel}
                        </Button>
                      )}
                      {run.origin === "upload" &&
                        (!isBusy(run) || run.state === "uploading") &&
                        (run.state !== "done" || run.dry_run) && (
                          <Button
                            onClick={() =>
                              void act(
                                ask(pathOf(run, "start/"), { method: "POST", body: { dry_run: false } }),
                              )
                            }
                          >
                            {run.dry_run ? w.load : w.goOn}
                          </Button>
                        )}
                      {run.origin === "upload" && (
                        <Button
                          kind="quiet"
                          icon="trash"
                          label={`${w.forget} ${run.name}`}
                          onClick={() => void act(ask(pathOf(run), { method: "DELETE" }))}
                        />
                      )}
                    </span>
                  </div>
                  <span class="muted number">{progressText(run)}</span>
                  {run.state === "running" && (
                    <progress
                      aria-label={run.name}
                      {...(run.progress.total_bytes
                        ? { max: run.progress.total_bytes, value: run.progress.bytes }
                        : {})}
                    />
                  )}
                  {run.error && <p class="error">{run.error}</p>}
                </li>
              ))}
            </ul>
          )
        }
      </Content>
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

/** A link would not do: the session counts with the page's own header only. */
async function fetchRejects(run: Import): Promise<void> {
  try {
    const answer = await send(pathOf(run, "rejects/"), { accept: "application/x-ndjson" });
    download(`${run.name}.rejected.ndjson`, await answer.blob());
  } catch (error) {
    complain(wordsOf(error));
  }
}

/** "46 % · 10,000 records/s · 53 s left · 3 rejected" */
function progressText({ state, received_bytes: received, progress }: Import): string {
  if (state === "uploading") return size(received);
  const { bytes, total_bytes: total, records, records_per_second: rate, seconds_left: left } = progress;
  return [
    ...(state === "running" && total ? [percent(bytes / total)] : []),
    w.records(records),
    ...(state === "running" ? [w.rate(number(rate))] : []),
    ...(state === "running" && left !== null ? [w.left(duration(left))] : []),
    w.rejected(number(progress.rejected)),
  ].join(" · ");
}

function SendFile({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [file, setFile] = useState<File>();
  const [isDry, setDry] = useState(false);
  const [target, setTarget] = useState(String(project.value?.id ?? ""));
  const [sent, setSent] = useState<number>();
  const [error, setError] = useState<string>();
  const sendAll = async () => {
    if (file === undefined) return;
    setError(undefined);
    setSent(0);
    try {
      const path = target === "" ? inProject("imports/") : `/api/projects/${target}/imports/`;
      const query = queryText({ name: file.name, dry_run: isDry, start: false });
      const { id } = await ask<{ id: string }>(`${path}${query}`, { method: "POST" });
      for (let offset = 0; offset < file.size; offset += partBytes) {
        await ask(`${path}${id}/parts/?offset=${offset}`, {
          method: "POST",
          file: file.slice(offset, offset + partBytes),
        });
        setSent(Math.min(file.size, offset + partBytes));
      }
      await ask(`${path}${id}/start/`, { method: "POST", body: {} });
      tell(w.started(file.name));
      onDone();
    } catch (failure) {
      setError(wordsOf(failure));
      setSent(undefined);
    }
  };
  return (
    <Dialog
      title={w.add}
      onClose={onClose}
      onSubmit={sendAll}
      actions={
        <Button kind="main" type="submit" isDisabled={file === undefined || sent !== undefined}>
          {w.send}
        </Button>
      }
    >
      <p class="help">{w.help}</p>
      <FileField label={w.file} onChoose={setFile} />
      <Select
        label={words.frame.project}
        value={target}
        choices={projects.value.map(({ id, name }) => [String(id), name] as const)}
        onChange={setTarget}
      />
      <Checkbox label={w.dryRunHelp} isOn={isDry} onChange={setDry} />
      {sent !== undefined && <progress aria-label={w.send} max={file?.size ?? 1} value={sent} />}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
    </Dialog>
  );
}
