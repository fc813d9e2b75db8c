/** What a draft changes: people now and after, per variant, and the values of test people. */

import { seriesClass } from "../../components/chart-frame.tsx";
import { number, percent } from "../../lib/format.ts";
import { messages } from "../../messages/index.ts";
import { type BlastRadius, getPersons } from "../../model/blast-radius.ts";
import type { Draft } from "../../model/draft.ts";
import type { Flag } from "../../model/flags.ts";
import { TestPersons } from "./test-people.tsx";

const w = messages.flag;

/** Undefined: not counted yet; null: cannot be counted now. */
export type Counted = BlastRadius | undefined | null;

export function Effect({
  flag,
  draft,
  isChanged,
  now,
  after,
}: {
  flag: Flag;
  draft: Draft;
  isChanged: boolean;
  /** Of the saved flag. */
  now: Counted;
  /** Of the draft. */
  after: Counted;
}) {
  return (
    <section class="card stack effect" aria-label={w.effect.title}>
      <div class="row apart">
        <h2>{w.effect.title}</h2>
        <span class="muted" role="status">
          <TotalBlastRadius blastRadius={after} />
        </span>
      </div>
      {after && <Counts draft={draft} now={isChanged ? now : undefined} after={after} />}
      <TestPersons flag={flag} draft={draft} isChanged={isChanged} />
    </section>
  );
}

function Counts({ draft, now, after }: { draft: Draft; now: Counted; after: BlastRadius }) {
  const total = getPersons(after).total;
  const variants = draft.filters.multivariate?.variants ?? [];
  const rows = [
    { name: w.effect.reached, count: (blastRadius: BlastRadius) => getPersons(blastRadius).reached },
    ...variants.map(({ key }) => ({
      name: key,
      count: (blastRadius: BlastRadius) =>
        blastRadius.variants.find((variant) => variant.key === key)?.reached ?? 0,
    })),
  ];
  if (total === 0) return null;
  return (
    <table class="figures effect-counts">
      <thead>
        <tr>
          <th scope="col">{w.effect.people}</th>
          {now && <th scope="col">{w.effect.now}</th>}
          <th scope="col">{now ? w.effect.after : w.effect.now}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, count }, index) => (
          <tr key={name}>
            <th scope="row">
              {index > 0 && <span class={`swatch ${seriesClass(index - 1)}`} aria-hidden="true" />} {name}
            </th>
            {now && <td>{number(count(now))}</td>}
            <td>
              {number(count(after))} <span class="muted">{percent(count(after) / total)}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function TotalBlastRadius({ blastRadius }: { blastRadius: Counted }) {
  if (blastRadius === null) return <>{w.notCounted}</>;
  if (blastRadius === undefined) return <>{w.counting}</>;
  const persons = getPersons(blastRadius);
  // Sets that only target groups match no persons.
  const isAboutPersons = blastRadius.populations.some(({ group_type_index: index }) => index === null);
  if (!isAboutPersons && blastRadius.populations.length > 0) return null;
  return <>{w.affectedInTotal(persons.reached, persons.total)}</>;
}
