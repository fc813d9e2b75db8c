/**
 * Version numbers as flag conditions compare them.
 *
 * Looser than semantic versioning (`v3.08` is 3.8.0), but with its ordering of pre-releases.
 * Source: contract, flag-evaluation 12.3.
 */

// Its index loads everything that can be done with ranges as well.
import SemVer from "semver/classes/semver.js";

/** Versions from `from` (included) up to `below` (excluded). */
export interface VersionRange {
  from: SemVer;
  below: SemVer;
}

const mainPart = /^\d+(?:\.\d+){0,2}$/;
const leadingZeros = /^0+(?=\d)/;

/** Versions read lately: one request compares the same few with many flags, and reading one costs 2 µs. */
const known = new Map<string, SemVer | undefined>();
const knownMax = 1_000;
const knownLengthMax = 40;

/** Reads a version, or returns undefined when the text is none. Build data after `+` is ignored. */
export function parseVersion(text: string): SemVer | undefined {
  if (text.length > knownLengthMax) return readVersion(text);
  if (known.has(text)) return known.get(text);
  const version = readVersion(text);
  if (known.size >= knownMax) known.clear();
  known.set(text, version);
  return version;
}

function readVersion(text: string): SemVer | undefined {
  const bare = withoutPrefix(text).split("+", 1)[0] ?? "";
  const dash = bare.indexOf("-");
  const main = dash < 0 ? bare : bare.slice(0, dash);
  if (!mainPart.test(main)) return undefined;
  const parts = main.split(".").map((part) => part.replace(leadingZeros, ""));
  while (parts.length < 3) parts.push("0");
  return strictVersion(parts.join(".") + (dash < 0 ? "" : bare.slice(dash)));
}

/** Same minor version, not older: `~1.2.3` is 1.2.3 up to below 1.3.0. */
export function tildeRange(text: string): VersionRange | undefined {
  const from = parseVersion(text);
  return from && range(from, `${from.major}.${from.minor + 1}.0`);
}

/** Same left-most non-zero number, not older: `^0.2.3` is 0.2.3 up to below 0.3.0. */
export function caretRange(text: string): VersionRange | undefined {
  const from = parseVersion(text);
  if (from === undefined) return undefined;
  if (from.major > 0) return range(from, `${from.major + 1}.0.0`);
  if (from.minor > 0) return range(from, `0.${from.minor + 1}.0`);
  return range(from, `0.0.${from.patch + 1}`);
}

/** `1.*`, `1.2.*`, `1.*.*` or `*`; a number after a star makes the pattern unusable. `"any"` is every version. */
export function wildcardRange(text: string): VersionRange | "any" | undefined {
  const parts = withoutPrefix(text).split(".");
  const firstStar = parts.indexOf("*");
  if (firstStar < 0 || parts.length > 3) return undefined;
  if (parts.slice(firstStar).some((part) => part !== "*")) return undefined;
  if (firstStar === 0) return "any";
  const from = parseVersion(parts.slice(0, firstStar).join("."));
  if (from === undefined || from.prerelease.length > 0) return undefined;
  return range(from, firstStar === 1 ? `${from.major + 1}.0.0` : `${from.major}.${from.minor + 1}.0`);
}

export function isInRange(version: SemVer, within: VersionRange): boolean {
  return version.compare(within.from) >= 0 && version.compare(within.below) < 0;
}

function withoutPrefix(text: string): string {
  const trimmed = text.trim();
  return trimmed.startsWith("v") || trimmed.startsWith("V") ? trimmed.slice(1) : trimmed;
}

function range(from: SemVer, below: string): VersionRange | undefined {
  const end = strictVersion(below);
  return end && { from, below: end };
}

function strictVersion(text: string): SemVer | undefined {
  try {
    return new SemVer(text);
  } catch {
    // The constructor is the library's only parser that reports what it refuses, and it does so by throwing.
    return undefined;
  }
}
