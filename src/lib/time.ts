/** Instants are stored as integer epoch microseconds (UTC); these functions format them. */

/** A day in UTC, in milliseconds. */
export const dayMs = 86_400_000;
export const microsPerDay = dayMs * 1_000;

/** `2026-11-21T02:31:07.123456Z` */
export function isoFromMicros(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const fraction = String(micros - seconds * 1_000_000).padStart(6, "0");
  return `${new Date(seconds * 1_000).toISOString().slice(0, -5)}.${fraction}Z`;
}

/** Epoch microseconds, with the clock's resolution of a millisecond. */
export function nowMicros(): number {
  return Date.now() * 1_000;
}

/** Resolves after a delay, without keeping the process alive. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}
