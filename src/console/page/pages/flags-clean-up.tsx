/** Stale flags one after the other: why, who still asks, what depends on them, which code to remove. */

import { useState } from "preact/hooks";
import { to } from "../lib/address.ts";
import { ask, wordsOf } from "../lib/api.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { changeFlag, type Flag, readFlags, whoGetsIt } from "../model/flags.ts";
import { readUsage } from "../model/usage.ts";
import { Button, CodeBlock, When } from "../parts/basics.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Content } from "../parts/states.tsx";
import { complain, tell } from "../parts/toast.tsx";
import { words } from "../words/index.ts";

const w = words.flags.cleanUp;
const staleMax = 500;
const usageDays = 14;

interface Facts {
  reason: string;
  dependents: { id: number; key: string }[];
  asked: number | undefined;
}

async function readFacts(flag: Flag, signal: AbortSignal): Promise<Facts> {
  const path = inProject(`feature_flags/${flag.id}/`);
  const [status, dependents, asked] = await Promise.all([
    ask<{ reason: string }>(`${path}status/`, { signal }),
    ask<{ id: number; key: string }[]>(`${path}dependent_flags/`, { signal }),
    // The figures are missing while the engine is away: all else is known.
    readUsage([flag.id], usageDays, signal).then(
      ({ results }) =>
        results.flatMap(({ values }) => values.flatMap(({ counts }) => counts)).reduce((a, b) => a + b, 0),
      () => undefined,
    ),
  ]);
  return { reason: status.reason, dependents, asked };
}

/** What the flag is for everybody, as the code that stays has it. */
function settledValue({ active, filters }: Flag): string {
  const first = filters.groups?.[0];
  if (!active || first === undefined || first.rollout_percentage === 0) return w.nobody;
  const whole = filters.multivariate?.variants?.find(({ rollout_percentage: share }) => share === 100);
  return first.variant ?? whole?.key ?? "on";
}

export function CleanUp({ onClose }: { onClose: () => void }) {
  const list = useResource(`stale ${project.value?.id}`, (signal) =>
    readFlags({ active: "STALE", limit: staleMax, order: "key" }, signal),
  );
  return (
    <Content of={list} rows={0}>
      {({ results }) => <Steps flags={results} onClose={onClose} />}
    </Content>
  );
}

function Steps({ flags: given, onClose }: { flags: readonly Flag[]; onClose: () => void }) {
  // What is deleted on the way leaves the server's list, not this one.
  const [flags] = useState(given);
  const [place, setPlace] = useState(0);
  const [done, setDone] = useState({ deleted: 0, off: 0 });
  const flag = flags[place];
  const facts = useResource<Facts>(flag ? `stale flag ${flag.id}` : null, (signal) =>
    readFacts(flag!, signal),
  );
  if (flag === undefined) {
    return (
      <Dialog
        title={words.flags.cleanUp.begin}
        onClose={onClose}
        actions={
          <Button kind="main" onClick={onClose}>
            {words.frame.close}
          </Button>
        }
      >
        <p>{w.ready}</p>
        <p class="muted">{w.done(done.deleted, done.off)}</p>
      </Dialog>
    );
  }
  const next = () => setPlace(place + 1);
  const act = async (change: { deleted: true } | { active: false }) => {
    try {
      await changeFlag(flag.id, change);
      if ("deleted" in change) {
        setDone({ ...done, deleted: done.deleted + 1 });
        tell(words.flag.deleted(flag.key));
      } else {
        setDone({ ...done, off: done.off + 1 });
        tell(words.flags.switchedOff(flag.key));
      }
      next();
    } catch (error) {
      complain(wordsOf(error));
    }
  };
  const notAllowed = !flag.can_edit && words.flags.notAllowed;
  const isNeeded = (facts.data?.dependents.length ?? 0) > 0 && w.hasDependents;
  return (
    <Dialog
      title={w.title(place + 1, flags.length)}
      size="large"
      onClose={onClose}
      actions={
        <>
          <Button onClick={next}>{w.skip}</Button>
          {flag.active && (
            <Button refusal={notAllowed || isNeeded} onClick={() => void act({ active: false })}>
              {w.switchOff}
            </Button>
          )}
          <Button kind="danger" refusal={notAllowed || isNeeded} onClick={() => void act({ deleted: true })}>
            {w.delete}
          </Button>
        </>
      }
    >
      <div class="stack" key={flag.id}>
        <h3>
          <a href={to(`flags/${flag.id}`)}>{flag.key}</a>{" "}
          <span class="muted">
            {flag.name} · {whoGetsIt(flag.filters)}
          </span>
        </h3>
        <Content of={facts} rows={3}>
          {({ reason, dependents, asked }) => (
            <dl class="properties">
              <div>
                <dt>{w.why}</dt>
                <dd>{reason}</dd>
              </div>
              <div>
                <dt>{w.lastAsked}</dt>
                <dd>
                  <When at={flag.last_called_at} fallback={words.flags.neverAsked} />
                  {asked !== undefined && asked > 0 && ` · ${w.asks(asked)}`}
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
