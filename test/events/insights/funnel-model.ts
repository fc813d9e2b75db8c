/** Ways through a funnel, each of them tried: what the event store has to find. Times in hours. */

export interface Done {
  event: string;
  at: number;
}
export type StepOrder = "ordered" | "strict" | "unordered";

export interface Way {
  wanted: string[];
  /** How many of the steps are to be reached. */
  upTo: number;
  hours: number;
}

/** When the ways through a funnel begin that get so far; each way is tried. Equal times go by the order of storing. */
export const starts: Record<StepOrder, (events: Done[], way: Way) => number[]> = {
  ordered: (events, { wanted, upTo, hours }) => {
    const sorted = byTime(events);
    const go = (step: number, place: number, start: number): boolean =>
      step === upTo ||
      sorted.some(
        ({ event, at }, index) =>
          index > place && event === wanted[step] && at - start <= hours && go(step + 1, index, start),
      );
    return sorted.flatMap(({ event, at }, index) => (event === wanted[0] && go(1, index, at) ? [at] : []));
  },
  strict: (events, { wanted, upTo, hours }) => {
    const sorted = byTime(events);
    return sorted.flatMap(({ at }, index) => {
      const run = sorted.slice(index, index + upTo);
      const isRun = run.length === upTo && run.every(({ event }, step) => event === wanted[step]);
      return isRun && run.at(-1)!.at - at <= hours ? [at] : [];
    });
  },
  unordered: (events, { wanted, upTo, hours }) =>
    byTime(events).flatMap(({ event, at: start }, _, sorted) => {
      if (!wanted.includes(event)) return [];
      const left = [...wanted];
      for (const { event, at } of sorted) {
        if (at < start || at - start > hours) continue;
        const step = left.indexOf(event);
        if (step >= 0) left.splice(step, 1);
      }
      return wanted.length - left.length >= upTo ? [start] : [];
    }),
};

/** How many hours the first way through the whole funnel took; each event is taken where it fits first. */
export const firstDurationMs: Record<
  StepOrder,
  (events: Done[], way: Omit<Way, "upTo">) => number | undefined
> = {
  ordered: (events, { wanted, hours }) => {
    const sorted = byTime(events);
    for (const [place, { event, at: start }] of sorted.entries()) {
      if (event !== wanted[0]) continue;
      let step = 1;
      for (const later of sorted.slice(place + 1)) {
        if (later.event !== wanted[step] || later.at - start > hours) continue;
        step++;
        if (step === wanted.length) return later.at - start;
      }
    }
    return undefined;
  },
  strict: (events, { wanted, hours }) => {
    const sorted = byTime(events);
    const [start] = starts.strict(events, { wanted, upTo: wanted.length, hours });
    if (start === undefined) return undefined;
    for (const [place, { at }] of sorted.entries()) {
      const run = sorted.slice(place, place + wanted.length);
      if (at !== start || run.length < wanted.length) continue;
      if (run.every(({ event }, step) => event === wanted[step])) return run.at(-1)!.at - at;
    }
    return undefined;
  },
  unordered: (events, { wanted, hours }) => {
    const [start] = starts.unordered(events, { wanted, upTo: wanted.length, hours });
    if (start === undefined) return undefined;
    const left = [...wanted];
    for (const { event, at } of byTime(events)) {
      const step = left.indexOf(event);
      if (at < start || step < 0) continue;
      left.splice(step, 1);
      if (left.length === 0) return at - start;
    }
    return undefined;
  },
};

const byTime = (events: Done[]) => events.toSorted((one, other) => one.at - other.at);
