/** Header of a flag's page: description, type, tags, last change, people, and what uses the flag. */

import { criticalTag } from "../../../../flags/rules/shared-rules.ts";
import { Badge, RelativeTime } from "../../components/primitives.tsx";
import { request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { type Flag, flagType, userName } from "../../model/flags.ts";
import { StaleBadge } from "../flags/columns.tsx";
import { type Counted, TotalBlastRadius } from "./effect.tsx";

const w = messages.flag;
/** Experiments that the strip names. */
const experimentsMax = 3;

export function FlagFacts({
  flag,
  description,
  blastRadius,
  disabledReason,
  onDescription,
}: {
  flag: Flag;
  /** Of the draft. */
  description: string;
  /** Of the saved flag. */
  blastRadius: Counted;
  disabledReason: string | false;
  onDescription: (text: string) => void;
}) {
  return (
    <div class="flag-facts">
      <input
        type="text"
        class="in-place"
        aria-label={w.description}
        placeholder={w.addDescription}
        value={description}
        disabled={!!disabledReason}
        title={disabledReason || undefined}
        onInput={(event) => onDescription(event.currentTarget.value)}
      />
      <div class="row facts">
        <Badge>{flagType(flag)}</Badge>
        <StaleBadge flag={flag} />
        {flag.tags.map((tag) => (
          <Badge key={tag} tone={tag === criticalTag ? "bad" : "plain"}>
            {tag}
          </Badge>
        ))}
        <span class="muted">
          {w.changed} <RelativeTime at={flag.updated_at ?? flag.created_at} />
          {flag.last_modified_by && ` ${w.changedBy(userName(flag.last_modified_by))}`} ·{" "}
          {w.version(flag.version)}
        </span>
        <span class="muted">
          <TotalBlastRadius blastRadius={blastRadius} />
        </span>
      </div>
    </div>
  );
}

/** Experiments and flags that use the flag. */
export function UsedBy({ flag }: { flag: Flag }) {
  const ids = Array.isArray(flag.experiment_set) ? flag.experiment_set.slice(0, experimentsMax) : [];
  const dependents = useResource<{ id: number; key: string }[]>(
    `dependents ${flag.id} ${flag.version}`,
    (signal) => request(inProject(`feature_flags/${flag.id}/dependent_flags/`), { signal }),
  );
  const flags = dependents.data ?? [];
  if (ids.length === 0 && flags.length === 0) return null;
  return (
    <p class="bar used-by">
      <span>
        {ids.map((id) => (
          <UsedByExperiment key={id} id={Number(id)} />
        ))}
        {flags.length > 0 && (
          <>
            {w.usedBy(flags.length)}:{" "}
            {flags.map(({ id, key }, index) => (
              <span key={id}>
                {index > 0 && ", "}
                <a href={to(`flags/${id}`)}>{key}</a>
              </span>
            ))}
          </>
        )}
      </span>
    </p>
  );
}

/** Clients may write ids of experiments that do not exist: those are not shown. */
function UsedByExperiment({ id }: { id: number }) {
  const found = useResource<{ name: string; start_date: string | null; end_date: string | null }>(
    `experiment of flag ${id}`,
    (signal) => request(inProject(`experiments/${id}/`), { signal }),
  );
  if (found.data === undefined) return null;
  const { name, start_date: start, end_date: end } = found.data;
  const state = end !== null ? "ended" : start !== null ? "running" : "draft";
  return (
    <span class="used">
      {w.usedByExperiment} <a href={to(`experiments/${id}`)}>{name}</a>{" "}
      <Badge tone={state === "running" ? "good" : "plain"}>{w.experimentStates[state]}</Badge>{" "}
    </span>
  );
}
