/** Reviews stale flags one by one: reason, remaining callers, dependents, code to remove. */

import { useState } from "preact/hooks";
import {
  type ApprovalRequired,
  ChangeRequestDialog,
  needsApproval,
} from "../../components/change-request-dialog.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Button, CodeBlock, RelativeTime } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { changeFlag, type Flag, readFlags, rolloutSummary } from "../../model/flags.ts";
import { readUsage } from "../../model/usage.ts";

const w = messages.flags.cleanUp;
const staleMax = 500;
const usageDays = 14;

interface Facts {
  reason: string;
  dependents: { id: number; key: string }[];
  asked: number | undefined;
}

async function readFacts(flag: Flag, signal: AbortSignal): Promise<Facts> {
  const path = inProject(`feature_flags/${flag.id}/`);
  const [status, dependents, requested] = await Promise.all([
    request<{ reason: string }>(`${path}status/`, { signal }),
    request<{ id: number; key: string }[]>(`${path}dependent_flags/`, { signal }),
    // Usage is missing while the engine is unavailable; the rest is still shown.
    readUsage([flag.id], usageDays, signal).then(
      ({ results }) =>
        results.flatMap(({ values }) => values.flatMap(({ counts }) => counts)).reduce((a, b) => a + b, 0),
      () => undefined,
    ),
  ]);
  return { reason: status.reason, dependents, asked: requested };
}

/** The flag's value for all users, as used in the remaining code. */
function settledValue({ active, filters }: Flag): string {
  const first = filters.groups?.[0];
  if (!active || first === undefined || first.rollout_percentage === 0) return w.off;
  const whole = filters.multivariate?.variants?.find(({ rollout_percentage: share }) => share === 100);
  return first.variant ?? whole?.key ?? "on";
}

export function CleanUp({ onClose }: { onClose: () => void }) {
  const list = useResource(`stale ${project.value?.id}`, (signal) =>
    readFlags({ active: "STALE", limit: staleMax, order: "key" }, signal),
  );
  return (
    <Content resource={list} rows={0}>
      {({ results }) => <Steps flags={results} onClose={onClose} />}
    </Content>
  );
}

function Steps({ flags: sent, onClose }: { flags: readonly Flag[]; onClose: () => void }) {
  // A snapshot: flags deleted meanwhile disappear from the server's list, not from this one.
  const [flags] = useState(sent);
  const [position, setPosition] = useState(0);
  const [done, setDone] = useState({ deleted: 0, off: 0 });
  const [rejected, setRejected] = useState<ApprovalRequired>();
  const flag = flags[position];
  const facts = useResource<Facts>(flag ? `stale flag ${flag.id}` : null, (signal) =>
    readFacts(flag!, signal),
  );
  if (flag === undefined) {
    return (
      <Dialog
        title={messages.flags.cleanUp.start}
        onClose={onClose}
        actions={
          <Button kind="main" onClick={onClose}>
            {messages.frame.close}
          </Button>
        }
      >
        <p>{w.ready}</p>
        <p class="muted">{w.done(done.deleted, done.off)}</p>
      </Dialog>
    );
  }
  const next = () => setPosition(position + 1);
  const act = async (change: { deleted: true } | { active: false }) => {
    try {
      await changeFlag(flag.id, change);
      if ("deleted" in change) {
        setDone({ ...done, deleted: done.deleted + 1 });
        toast(messages.flag.deleted(flag.key));
      } else {
        setDone({ ...done, off: done.off + 1 });
        toast(messages.flags.switchedOff(flag.key));
      }
      next();
    } catch (error) {
      if (needsApproval(error)) setRejected({ flag, changes: change });
      else toastError(error);
    }
  };
  if (rejected)
    return <ChangeRequestDialog {...rejected} onClose={() => setRejected(undefined)} onProposed={next} />;
  const notAllowed = !flag.can_edit && messages.flags.notAllowed;
  const isNeeded = (facts.data?.dependents.length ?? 0) > 0 && w.hasDependents;
  return (
    <Dialog
      title={w.title(position + 1, flags.length)}
      size="large"
      onClose={onClose}
      actions={
        <>
          <Button onClick={next}>{w.skip}</Button>
          {flag.active && (
            <Button disabledReason={notAllowed || isNeeded} onClick={() => void act({ active: false })}>
              {w.switchOff}
            </Button>
          )}
          <Button
            kind="danger"
            disabledReason={notAllowed || isNeeded}
            onClick={() => void act({ deleted: true })}
          >
            {w.delete}
          </Button>
        </>
      }
    >
      <div class="stack" key={flag.id}>
        <h3>
          <a href={to(`flags/${flag.id}`)}>{flag.key}</a>{" "}
          <span class="muted">
            {flag.name} · {rolloutSummary(flag.filters)}
          </span>
        </h3>
        <Content resource={facts} rows={3}>
          {({ reason, dependents, asked }) => (
            <dl class="properties">
              <div>
                <dt>{w.why}</dt>
                <dd>{reason}</dd>
              </div>
              <div>
                <dt>{w.lastEvaluated}</dt>
                <dd>
                  <RelativeTime at={flag.last_called_at} fallback={messages.flags.neverEvaluated} />
                  {asked !== undefined && asked > 0 && ` · ${w.evaluations(asked)}`}
                </dd>
              </div>
              <div>
                <dt>{w.dependents}</dt>
                <dd>
                  {dependents.length === 0 && w.noDependents}
                  {dependents.map(({ id, key }) => (
                    <a key={id} href={to(`flags/${id}`)}>
                      {key}{" "}
                    </a>
                  ))}
                </dd>
              </div>
              <div>
                <dt>{w.code}</dt>
                <dd class="stack tight">
                  <span>{w.codeHelp(settledValue(flag))}</span>
                  <CodeBlock label={w.code} code={`git grep -n -F '${flag.key.replaceAll("'", "'\\''")}'`} />
                </dd>
              </div>
            </dl>
          )}
        </Content>
      </div>
    </Dialog>
  );
}
