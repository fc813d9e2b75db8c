/** Parses the times of events, AssemblyScript: frequent forms here, all others with `parseInstant`. */

/** Epoch microseconds of a text of any form; NaN if it is not a time. */
@external("host", "timeOf")
declare function timeOf(text: usize, length: i32): f64;

/** In the year 2255; integers up to here are exact in JavaScript. */
export const microsMax: i64 = 9_000_000_000_000_000;
const dayMicros: i64 = 86_400_000_000;
const minuteMicros: i64 = 60_000_000;

/** Epoch microseconds; -1 if the text is not a time, or one that needs the slow path. */
export function instantOf(at: usize, length: i32): i64 {
  const parsed = fastTime(at, at + length);
  if (parsed >= 0) return parsed;
  const micros = timeOf(at, length);
  return micros >= 0 && micros <= <f64>microsMax ? <i64>micros : -1;
}

/** `2026-11-21T02:31:07.123Z` with or without fraction and zone; -1 for any other form, and before 1970. */
function fastTime(at: usize, end: usize): i64 {
  if (end - at < 19 || !hasForm(at)) return -1;
  const year = digits(at, 4);
  const month = digits(at + 5, 2);
  const day = digits(at + 8, 2);
  const hour = digits(at + 11, 2);
  const minute = digits(at + 14, 2);
  const second = digits(at + 17, 2);
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > daysIn(month, year)) return -1;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return -1;
  at += 19;
  let micros = 0;
  if (load<u8>(at) == 46) {
    const first = ++at;
    for (let scale = 100_000; isDigit(at); at++) {
      micros += scale * (<i32>load<u8>(at) - 48);
      scale /= 10;
    }
    if (at == first) return -1;
  }
  const east = zoneMinutes(at, end);
  if (east == noZone) return -1;
  // Days since 1970 of a year that begins in March, so that the leap day is its last.
  const shifted = month > 2 ? month - 3 : month + 9;
  const from = month > 2 ? year : year - 1;
  const days = from * 365 + from / 4 - from / 100 + from / 400 + (shifted * 153 + 2) / 5 + day - 1 - 719_468;
  const minutes = <i64>(hour * 60 + minute - east);
  return <i64>days * dayMicros + minutes * minuteMicros + <i64>second * 1_000_000 + <i64>micros;
}

function hasForm(at: usize): bool {
  const gap = load<u8>(at, 10);
  return (
    (gap == 84 || gap == 32) &&
    load<u8>(at, 4) == 45 &&
    load<u8>(at, 7) == 45 &&
    load<u8>(at, 13) == 58 &&
    load<u8>(at, 16) == 58
  );
}

const noZone = 10_000;

/** Minutes east of Greenwich of the rest of the text: empty, `Z` or `+01:00`. */
function zoneMinutes(at: usize, end: usize): i32 {
  if (at == end) return 0;
  const sign = load<u8>(at);
  if (sign == 90) return at + 1 == end ? 0 : noZone;
  if ((sign != 43 && sign != 45) || at + 6 != end || load<u8>(at, 3) != 58) return noZone;
  const hours = digits(at + 1, 2);
  const minutes = digits(at + 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return noZone;
  return sign == 43 ? hours * 60 + minutes : -(hours * 60 + minutes);
}

function daysIn(month: i32, year: i32): i32 {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

@inline
function isDigit(at: usize): bool {
  const code = load<u8>(at);
  return code >= 48 && code <= 57;
}

/** -1 if a character is not a digit. */
function digits(at: usize, count: i32): i32 {
  let value = 0;
  for (let index = 0; index < count; index++) {
    if (!isDigit(at + index)) return -1;
    value = value * 10 + (<i32>load<u8>(at + index) - 48);
  }
  return value;
}
