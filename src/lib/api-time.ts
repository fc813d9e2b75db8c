/** Times as the management API writes them (contract: management-api 1.2). */

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
