/** Columns of the flag list. */

import { criticalTag } from "../../../../flags/rules/shared-rules.ts";
import { Checkbox } from "../../components/fields.tsx";
import { Badge, Button, RelativeTime, Switch } from "../../components/primitives.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import type { Column } from "../../components/table.tsx";
import { to } from "../../lib/router.ts";
import { messages } from "../../messages/index.ts";
import { type Flag, flagType, rolloutSummary, userName } from "../../model/flags.ts";

const w = messages.flags;

export interface FlagActions {
  chosen: ReadonlyMap<number, Flag>;
  onChoose: (flag: Flag) => void;
  onToggle: (flag: Flag) => void;
  onRestore: (flag: Flag) => void;
  /** Evaluations per day of the flags in view. */
  usage: ReadonlyMap<number, readonly number[]>;
  /** Deleted flags have a button in place of the switch. */
  isOfDeleted: boolean;
}

export function flagColumns(flagActions: FlagActions): Column<Flag>[] {
  return [
    {
      id: "choose",
      title: <span class="unseen">{w.columns.choose}</span>,
      width: "1.5rem",
      isWideOnly: true,
      cell: (flag) => (
        <Checkbox
          label={w.chooseOne(flag.key)}
          isLabelHidden
          isOn={flagActions.chosen.has(flag.id)}
          onChange={() => flagActions.onChoose(flag)}
        />
      ),
    },
    {
      id: "on",
      title: w.columns.on,
      sort: "-active",
      width: flagActions.isOfDeleted ? "6rem" : "2.6rem",
      cell: (flag) =>
        flag.deleted ? (
          <Button
            label={`${w.restore}: ${flag.key}`}
            disabledReason={!flag.can_edit && w.notAllowed}
            onClick={() => flagActions.onRestore(flag)}
          >
            {w.restore}
          </Button>
        ) : (
          <Switch
            name={flag.key}
            isOn={flag.active}
            disabledReason={!flag.can_edit && w.notAllowed}
            onChange={() => flagActions.onToggle(flag)}
          />
        ),
    },
    {
      id: "key",
      title: w.columns.key,
      sort: "key",
      width: "minmax(0, 3fr)",
      cell: (flag, _, isNarrow) => (
        <>
          <a href={to(`flags/${flag.id}`)}>{flag.key}</a> <StaleBadge flag={flag} />
          <div class="sub">{flag.name || (isNarrow && rolloutSummary(flag.filters))}</div>
        </>
      ),
    },
    {
      id: "type",
      title: w.columns.type,
      width: "6.3rem",
      isWideOnly: true,
      cell: flagType,
    },
    {
      id: "who",
      title: w.columns.who,
      width: "minmax(0, 2.4fr)",
      isWideOnly: true,
      cell: (flag) => <span title={rolloutSummary(flag.filters)}>{rolloutSummary(flag.filters)}</span>,
    },
    {
      id: "usage",
      title: w.columns.usage,
      width: "7.2rem",
      isWideOnly: true,
      cell: (flag) => {
        const days = flagActions.usage.get(flag.id);
        const total = days?.reduce((sum, count) => sum + count, 0) ?? 0;
        return total > 0 ? <Sparkline values={days!} label={w.sparkline(total)} /> : null;
      },
    },
    {
      id: "asked",
      title: w.columns.lastEvaluated,
      sort: "-last_called_at",
      width: "7.8rem",
      isWideOnly: true,
      cell: (flag) => <RelativeTime at={flag.last_called_at} fallback={w.neverEvaluated} />,
    },
    {
      id: "changed",
      title: w.columns.changed,
      sort: "-updated_at",
      width: "minmax(0, 1.5fr)",
      isWideOnly: true,
      cell: (flag) => (
        <>
          <RelativeTime at={flag.updated_at ?? flag.created_at} />
          {flag.last_modified_by && <span class="muted"> · {userName(flag.last_modified_by)}</span>}
        </>
      ),
    },
    {
      id: "tags",
      title: w.columns.tags,
      width: "minmax(0, 1.2fr)",
      isWideOnly: true,
      cell: (flag) =>
        flag.tags.map((tag) => (
          <Badge key={tag} tone={tag === criticalTag ? "bad" : "plain"}>
            {tag}
          </Badge>
        )),
    },
  ];
}

/** For stale flags; the definition on hover. */
export function StaleBadge({ flag }: { flag: Flag }) {
  return flag.status === "STALE" ? (
    <Badge tone="warn" title={w.staleHelp}>
      {w.stale}
    </Badge>
  ) : null;
}
