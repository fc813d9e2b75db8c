/** Tiles without an insight: a text, or the list of flag changes. */

import { useState } from "preact/hooks";
import { Area } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Content } from "../../components/states.tsx";
import { useForm } from "../../lib/form.ts";
import { to } from "../../lib/router.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { flagChangeLine, useFlagChanges } from "../../model/flag-changes.ts";
import type { TileControls } from "./board.tsx";
import { TileHead } from "./tile.tsx";

const w = lazyMessages.dashboards;
const dayMs = 86_400_000;
const daysDefault = 30;

interface TileProps {
  name: string;
  controls: TileControls;
  onRemove: () => void;
}

export function TextTile({
  name,
  controls: { grip, moves },
  text,
  onChange,
  onRemove,
}: TileProps & { text: string; onChange: (text: string) => Promise<unknown> }) {
  const [isEdited, setEdited] = useState(false);
  const [head, ...rest] = text.split("\n");
  return (
    <>
      <TileHead
        name={head ?? name}
        grip={grip}
        items={[...moves, [w.editText, () => setEdited(true)], [w.removeTile, onRemove]]}
      />
      <div class="tile-body tile-text" tabIndex={0} role="group" aria-label={name}>
        {rest.join("\n").trim()}
      </div>
      {isEdited && <EditText text={text} onChange={onChange} onClose={() => setEdited(false)} />}
    </>
  );
}

function EditText({
  text,
  onChange,
  onClose,
}: {
  text: string;
  onChange: (text: string) => Promise<unknown>;
  onClose: () => void;
}) {
  const form = useForm({ text }, async (values) => {
    await onChange(values.text);
    onClose();
  });
  return (
    <FormDialog title={w.editText} form={form} action={messages.frame.save} onClose={onClose}>
      <Area label={w.text} {...form.input("text")} rows={6} />
    </FormDialog>
  );
}

/** The day on which a relative or absolute range starts, such as "-7d" or a date. */
function dayOfRange(from: string | null | undefined, now: number): string {
  const toDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const [, count, unit] = /^-(\d{1,5})([hdwmy])$/.exec(from ?? "") ?? [];
  if (count !== undefined) {
    const days = { h: 1 / 24, d: 1, w: 7, m: 31, y: 366 }[unit as "h"];
    return toDay(now - Number(count) * days * dayMs);
  }
  if (from === "all") return toDay(0);
  return /^\d{4}-\d{2}-\d{2}/.exec(from ?? "")?.[0] ?? toDay(now - daysDefault * dayMs);
}

export function FlagChangesTile({
  name,
  controls: { grip, moves },
  from,
  onRemove,
}: TileProps & { from: string | null | undefined }) {
  const changes = useFlagChanges(dayOfRange(from, Date.now()));
  return (
    <>
      <TileHead name={name} grip={grip} items={[...moves, [w.removeTile, onRemove]]} />
      <div class="tile-body" tabIndex={0} role="group" aria-label={name}>
        <Content resource={changes} rows={3}>
          {(entries) =>
            entries.length === 0 ? (
              <p class="muted">{w.noChanges}</p>
            ) : (
              <ul class="plain-list">
                {entries.map((entry) => (
                  <li key={entry.id}>
                    <a href={to(`flags/${entry.item_id}`)}>{flagChangeLine(entry)}</a>
                  </li>
                ))}
              </ul>
            )
          }
        </Content>
      </div>
    </>
  );
}
