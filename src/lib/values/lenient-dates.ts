/**
 * Parses dates as written by people and mail headers, in UTC without a zone.
 *
 * Forms: `Thu, 21 Mar 2024 10:00:00 GMT`, `21 March 2024`, `Mar 21, 2024 5:30 pm`, `2024/3/21`, `2024.03.21`,
 * `3/21/2024` (month first), `20240321T100000Z`, `2024-3-21`. Source: contract, flag-evaluation 12.2 and 19 (the
 * contract leaves the grammar open).
 */

import { months } from "../timestamp.ts";
import { getOffsetMs, getWallTime, type WrittenDate } from "./calendar.ts";

const monthName =
  "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\.?";
const weekday = "(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\\.?,?\\s+)?";
const rest = "(?:[,\\s]+(.*))?";

const forms: { pattern: RegExp; parts: (found: string[]) => [string, string, string] }[] = [
  {
    pattern: new RegExp(
      `^${weekday}(\\d{1,2})(?:st|nd|rd|th)?[\\s-]+${monthName},?[\\s-]+(\\d{4})${rest}$`,
      "i",
    ),
    parts: (f) => [f[3]!, monthNumber(f[2]!), f[1]!],
  },
  {
    pattern: new RegExp(`^${weekday}${monthName}\\s+(\\d{1,2})(?:st|nd|rd|th)?,?\\s+(\\d{4})${rest}$`, "i"),
    parts: (f) => [f[3]!, monthNumber(f[1]!), f[2]!],
  },
  {
    pattern: /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:[T\s]+(.*))?$/,
    parts: (f) => [f[1]!, f[3]!, f[4]!],
  },
  {
    pattern: /^(\d{1,2})\/(\d{1,2})\/(\d{4})(?:[,\s]+(.*))?$/,
    parts: (f) => [f[3]!, f[1]!, f[2]!],
  },
  {
    pattern: /^(\d{4})(\d{2})(\d{2})T(.*)$/,
    parts: (f) => [f[1]!, f[2]!, f[3]!],
  },
];

const time =
  /^(\d{1,2})(?::(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?(?:\s*([ap])\.?m\.?)?(?:\s*([a-z]{1,5}|[+-]\d{2}:?(?:\d{2})?))?$/i;
const compactTime = /^(\d{2})(\d{2})(\d{2})?()()(Z|[+-]\d{2}:?\d{2})?$/i;

// Zone names of mail headers; other names are rejected rather than guessed.
const mailZones: Record<string, string> = {
  est: "-05:00",
  edt: "-04:00",
  cst: "-06:00",
  cdt: "-05:00",
  mst: "-07:00",
  mdt: "-06:00",
  pst: "-08:00",
  pdt: "-07:00",
};

/** Parses a date in one of the forms above; undefined when none fits. */
export function parseLenientDate(text: string): WrittenDate | undefined {
  for (const form of forms) {
    const found = form.pattern.exec(text);
    if (found === null) continue;
    const [year, month, day] = form.parts(found);
    return withTime(Number(year), Number(month), Number(day), found.at(-1) ?? "");
  }
  return undefined;
}

function withTime(year: number, month: number, day: number, timeText: string): WrittenDate | undefined {
  if (timeText === "") return inUtc(getWallTime(year, month, day), 0);
  const found = compactTime.exec(timeText) ?? time.exec(timeText);
  if (found === null) return undefined;
  const [, hourText, minute, second, fraction, half, zone] = found;
  const hour = hourOfDay(Number(hourText), half);
  // A bare number after a date is a time only with `am` or `pm`.
  if (hour === undefined || (minute === undefined && !half)) return undefined;
  const offset = zone ? getOffsetMs(mailZones[zone.toLowerCase()] ?? zone) : 0;
  const wall = getWallTime(year, month, day, hour, Number(minute ?? 0), Number(second ?? 0), fraction);
  return inUtc(wall, offset);
}

function inUtc(wallTime: number | undefined, offset: number | undefined): WrittenDate | undefined {
  return wallTime === undefined || offset === undefined ? undefined : { instant: wallTime - offset };
}

function hourOfDay(hour: number, half: string | undefined): number | undefined {
  if (!half) return hour;
  if (hour < 1 || hour > 12) return undefined;
  return (hour % 12) + (half.toLowerCase() === "p" ? 12 : 0);
}

function monthNumber(name: string): string {
  return String(months.indexOf(name.slice(0, 3).toLowerCase()) + 1);
}
