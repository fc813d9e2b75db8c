/** The change requests of a project that need a decision. */

import { request } from "../lib/api.ts";
import { useResource } from "../lib/resource.ts";
import { to } from "../lib/router.ts";
import { inProject, project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";

const w = messages.flags;
/** Number of flags and cohorts with change requests that are named; the rest is elided. */
const waitingShown = 10;

interface Pending {
  results: { flag_id: number | null; flag_key: string; cohort_id: number; cohort_name: string }[];
}

/** @param round changes when there may be a new change request. */
export function Waiting({ round }: { round: number }) {
  const found = useResource<Pending>(`waiting ${project.value?.id} ${round}`, (signal) =>
    request(inProject("change_requests/?state=pending"), { signal }),
  );
  const all = found.data?.results ?? [];
  if (all.length === 0) return null;
  const keys = new Map(
    all.map((item) =>
      item.flag_id === null
        ? [`cohorts/${item.cohort_id}`, item.cohort_name]
        : [`flags/${item.flag_id}`, item.flag_key],
    ),
  );
  return (
    <p class="bar accent">
      <span>
        {w.waiting(all.length)}{" "}
        {[...keys].slice(0, waitingShown).map(([page, key], position) => (
          <>
            {position > 0 && ", "}
            <a key={page} href={to(page)}>
              {key}
            </a>
          </>
        ))}
        {keys.size > waitingShown && " …"}
      </span>
    </p>
  );
}
