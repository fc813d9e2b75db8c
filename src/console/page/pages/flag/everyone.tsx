/** Releases a flag to everyone, or turns it off for everyone, after a confirmation. */

import { useState } from "preact/hooks";
import { ChangeLines } from "../../components/change-list.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Button } from "../../components/primitives.tsx";
import { messages } from "../../messages/index.ts";
import { filterDifferences } from "../../model/filter-differences.ts";
import type { Filters, Flag } from "../../model/flags.ts";

const w = messages.flag.extremes;

export type Extreme = "everyone" | "off";

/** The change of the flag; variants keep their percentages. */
export function toExtreme({ filters }: Flag, to: Extreme): { active: boolean; filters?: Filters } {
  if (to === "off") return { active: false };
  return { active: true, filters: { ...filters, groups: [{ properties: [], rollout_percentage: 100 }] } };
}

export function EveryoneDialog({
  flag,
  to,
  onYes,
  onClose,
}: {
  flag: Flag;
  to: Extreme;
  onYes: () => Promise<void>;
  onClose: () => void;
}) {
  const [isBusy, setBusy] = useState(false);
  const change = toExtreme(flag, to);
  const lines = change.filters ? filterDifferences(flag.filters, change.filters) : [];
  if (change.active !== flag.active)
    lines.unshift(change.active ? messages.activity.switchedOn : messages.activity.switchedOff);
  return (
    <Dialog
      title={`${w[to]}: ${flag.key}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{messages.frame.cancel}</Button>
          <Button
            kind="danger"
            isDisabled={isBusy || lines.length === 0}
            onClick={() => {
              setBusy(true);
              void onYes().finally(onClose);
            }}
          >
            {w[to]}
          </Button>
        </>
      }
    >
      <p>{lines.length === 0 ? w.already : w.texts[to]}</p>
      <ChangeLines lines={lines} />
    </Dialog>
  );
}
