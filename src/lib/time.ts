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

/** UTC with six digits after the second and `Z`. */
export const toApiTime = (instant: Date): string => instant.toISOString().replace("Z", "000Z");

/** As `toApiTime`; null stays null. */
export const toApiTimeOrNull = (instant: Date | null): string | null =>
  instant === null ? null : toApiTime(instant);

/** Like `toApiTime`, from microseconds since 1970 UTC; years before 0 and after 9999 are clamped. */
export function microsToApiTime(micros: number): string {
  const bounded = Math.min(Math.max(micros, microsMin), microsMax);
  const millis = Math.floor(bounded / 1_000);
  const rest = String(bounded - millis * 1_000).padStart(3, "0");
  return new Date(millis).toISOString().replace("Z", `${rest}Z`);
}

const microsMin = Date.parse("0000-01-01T00:00:00Z") * 1_000;
const microsMax = Date.parse("9999-12-31T23:59:59Z") * 1_000;
