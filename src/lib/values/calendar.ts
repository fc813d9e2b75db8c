/** Calendar arithmetic shared by the two date parsers. */

/** A parsed date: an instant, or a wall time in a zone that is applied later. Milliseconds since 1970. */
export type WrittenDate = { instant: number } | { wallTime: number };

/** Milliseconds of a calendar day and time; undefined for a day or time that does not exist. */
export function getWallTime(
  year: number,
  month: number,
  day: number,
  hour = 0,
  minute = 0,
  second = 0,
  fraction = "",
): number | undefined {
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59) return undefined;
  const start = new Date(0).setUTCFullYear(year, month - 1, day);
  if (new Date(start).getUTCDate() !== day) return undefined;
  return (
    start +
    ((hour * 60 + minute) * 60 + second) * 1000 +
    (fraction === "" ? 0 : Number(`0.${fraction}`) * 1000)
  );
}

const formatOffset = /^([+-])(\d{2}):?(\d{2})?$/;

/** Milliseconds east of Greenwich of `Z`, `UTC`, `GMT`, `+01:00`, `-0700`; undefined for other text. */
export function getOffsetMs(text: string): number | undefined {
  if (/^(?:z|utc|gmt)$/i.test(text)) return 0;
  const found = formatOffset.exec(text);
  if (found === null) return undefined;
  const minutes = Number(found[2]) * 60 + Number(found[3] ?? 0);
  if (Number(found[2]) > 23 || Number(found[3] ?? 0) > 59) return undefined;
  return (found[1] === "-" ? -minutes : minutes) * 60_000;
}
