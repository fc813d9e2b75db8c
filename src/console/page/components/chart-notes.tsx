/** Notes of users on a chart: a mark per bucket below the axis, a list, and a form for a new one. */

import { useState } from "preact/hooks";
import { request } from "../lib/api.ts";
import type { Annotation as Note } from "../lib/api-types.ts";
import { useBackgroundResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { bucketAt, wallTime, withinDay } from "../lib/wall-time.ts";
import { messages } from "../messages/index.ts";
import { Dialog } from "./dialog.tsx";
import { Field } from "./fields.tsx";
import { Form } from "./form.tsx";
import { Button, Day } from "./primitives.tsx";
import { toast, toastError } from "./toast.tsx";

const w = messages.notes;
const notesMax = 500;

/** @param buckets starts of the buckets, as days or wall times. @param names of the buckets on the axis */
export function ChartNotes({ buckets, names }: { buckets: readonly string[]; names: readonly string[] }) {
  const notes = useBackgroundResource<{ results: Note[] }>(`notes ${project.value?.id}`, (signal) =>
    request(inProject(`annotations/?scope=project&limit=${notesMax}`), { signal }),
  );
  const [opened, setOpened] = useState<number | "new">();
  const dated = (notes.data?.results ?? [])
    .map((note) => ({ note, position: bucketAt(note.date_marker, buckets) }))
    .filter(({ note, position }) => position >= 0 && isWithin(note, position, buckets));
  const byPosition = new Map(
    [...Map.groupBy(dated, ({ position }) => position)].map(([position, of]) => [
      position,
      of.map(({ note }) => note),
    ]),
  );
  return (
    <div class="chart-notes">
      {byPosition.size > 0 && (
        <ul class="flag-marks">
          {[...byPosition].map(([position, found]) => (
            <li key={position} style={{ "--position": `${position / Math.max(1, buckets.length - 1)}` }}>
              <button
                type="button"
                class="note-mark"
                aria-label={w.on(found.length, names[position] ?? "")}
                onClick={() => setOpened(position)}
              >
                {found.length}
              </button>
              <span class="mark-tip" role="tooltip">
                {found.map((note) => (
                  <span key={note.id}>{getLine(note)}</span>
                ))}
              </span>
            </li>
          ))}
        </ul>
      )}
      <Button kind="quiet" icon="plus" onClick={() => setOpened("new")}>
        {w.add}
      </Button>
      {opened === "new" && (
        <NewNote
          day={(buckets.at(-1) ?? wallTime(new Date().toISOString())).slice(0, 10)}
          onClose={() => setOpened(undefined)}
          onAdded={() => {
            setOpened(undefined);
            notes.reload();
          }}
        />
      )}
      {typeof opened === "number" && (
        <NoteList
          notes={byPosition.get(opened) ?? []}
          onClose={() => setOpened(undefined)}
          onChanged={notes.reload}
        />
      )}
    </div>
  );
}

/** Whether a note is in its bucket: the last one has an end too. */
function isWithin(note: Note, position: number, buckets: readonly string[]): boolean {
  if (position < buckets.length - 1 || buckets.length < 2) return true;
  const [before, last] = buckets.slice(-2).map((bucket) => Date.parse(bucket.replace(" ", "T")));
  return Date.parse(wallTime(note.date_marker).replace(" ", "T")) < last! + (last! - before!);
}

const getLine = ({ content, created_by: by }: Note) => w.line(content, by?.first_name || by?.email || "");

function NewNote({ day, onClose, onAdded }: { day: string; onClose: () => void; onAdded: () => void }) {
  const [content, setContent] = useState("");
  const [at, setAt] = useState(day);
  const send = async () => {
    const body = { content: content.trim(), date_marker: withinDay(at) };
    await request(inProject("annotations/"), { method: "POST", body });
    onAdded();
  };
  return (
    <Dialog title={w.add} onClose={onClose}>
      <Form action={w.add} done={w.added} onSend={send}>
        {(errorOf) => (
          <>
            <Field
              label={w.content}
              value={content}
              onInput={setContent}
              error={errorOf("content")}
              isRequired
              autofocus
            />
            <Field
              label={w.day}
              type="date"
              value={at}
              onInput={setAt}
              error={errorOf("date_marker")}
              isRequired
            />
          </>
        )}
      </Form>
    </Dialog>
  );
}

function NoteList({
  notes,
  onClose,
  onChanged,
}: {
  notes: readonly Note[];
  onClose: () => void;
  onChanged: () => void;
}) {
  const remove = ({ id }: Note) =>
    request(inProject(`annotations/${id}/`), { method: "DELETE" }).then(() => {
      toast(w.removed);
      if (notes.length === 1) onClose();
      onChanged();
    }, toastError);
  return (
    <Dialog title={w.title} onClose={onClose}>
      <ul class="lines">
        {notes.map((note) => (
          <li key={note.id} class="row apart">
            <span>
              {getLine(note)}{" "}
              <span class="muted">
                <Day at={note.date_marker} />
              </span>
            </span>
            <Button
              kind="quiet"
              icon="trash"
              label={w.remove(note.content)}
              onClick={() => void remove(note)}
            />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
