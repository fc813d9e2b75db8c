/** Pending change requests of a flag or cohort, and the decision about them. */

import { queryString, request } from "../lib/api.ts";
import type { ChangeRequest as Proposal } from "../lib/api-types.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, me, project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { userName } from "../model/flags.ts";
import { Button } from "./primitives.tsx";
import { toast, toastError } from "./toast.tsx";

const w = messages.flag.pending;

type Decision = "approve" | "reject";

export type { Proposal };

export function Proposals({
  target,
  version,
  round,
  disabledReason: rejection,
  getLines,
  onDecided,
}: {
  target: { flag_id: number } | { cohort_id: number };
  /** Changes with the flag or cohort. */
  version: number | string;
  /** Changes when there may be a new change request. */
  round: number;
  disabledReason: string | false;
  /** What a request changes, one line each. */
  getLines: (proposal: Proposal) => string[];
  onDecided: (how: Decision) => void;
}) {
  const filter = queryString({ ...target, state: "pending" });
  const found = useResource<{ results: Proposal[] }>(
    `proposals ${project.value?.id} ${filter} ${version} ${round}`,
    (signal) => request(inProject(`change_requests/${filter}`), { signal }),
  );
  const decide = (proposal: Proposal, how: Decision) => {
    request(inProject(`change_requests/${proposal.id}/${how}/`), { method: "POST" }).then(() => {
      toast(how === "approve" ? w.approved : w.rejected);
      found.reload();
      onDecided(how);
    }, toastError);
  };
  return (
    <>
      {(found.data?.results ?? []).map((proposal) => {
        const isOwn = proposal.created_by?.uuid !== undefined && proposal.created_by.uuid === me.value?.uuid;
        return (
          <section key={proposal.id} class="bar accent" aria-label={w.proposal}>
            <span>
              <b>{w.proposedBy(userName(proposal.created_by))}</b> {proposal.note}
              <ul class="changes">
                {getLines(proposal).map((line) => (
                  <li key={line}>{line}</li>
                ))}
              </ul>
              {proposal.affected_flags.length > 0 && (
                <span class="muted">{w.affects(proposal.affected_flags)}</span>
              )}
            </span>
            <Button
              disabledReason={isOwn ? w.requiresOther : rejection}
              kind="main"
              onClick={() => decide(proposal, "approve")}
            >
              {w.approve}
            </Button>
            <Button disabledReason={rejection} onClick={() => decide(proposal, "reject")}>
              {isOwn ? w.withdraw : w.reject}
            </Button>
          </section>
        );
      })}
    </>
  );
}
