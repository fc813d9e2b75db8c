/** Limits of time on machines that other tests keep busy. */

const triesMax = 5;

/**
 * Expects that work is done in time at least once in a few tries: what is slow by itself is slow each time, and a busy
 * machine holds up only now and then.
 *
 * @throws when each try took longer, and what the work throws.
 */
export async function expectWithin(limitMs: number, work: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  while (times.length < triesMax) {
    const started = performance.now();
    await work();
    times.push(performance.now() - started);
    if (times.at(-1)! < limitMs) return;
  }
  throw new Error(`Not within ${limitMs} ms in any try, but in ${times.map(Math.round).join(", ")} ms.`);
}
