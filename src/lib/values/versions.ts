/**
 * Version numbers in flag conditions.
 *
 * Looser than semantic versioning (`v3.08` is 3.8.0), but with its ordering of pre-releases. Source: contract,
 * flag-evaluation 12.3.
 */

// The package's index also loads its range functions.
import SemVer from "semver/classes/semver.js";

/** A number in a version; beyond the safe integers (build times are) a bigint keeps it exact. */
type Part = number | bigint;

interface Version {
  /** Major, minor, patch. */
  main: readonly [Part, Part, Part];
  /** Version zero with the pre-release, which the library orders. */
  release: SemVer;
}

/** Versions from `from` (inclusive) to `below` (exclusive). */
export interface VersionRange {
  from: Version;
  below: Version;
}

const released = new SemVer("0.0.0");
/** The library's own limit. */
const lengthMax = 256;
const mainPart = /^\d+(?:\.\d+){0,2}$/;

/** Recently parsed versions: one request compares a few with many flags, and parsing one takes 2 µs. */
const known = new Map<string, Version | undefined>();
const knownMax = 1_000;
const knownLengthMax = 40;

/** Parses a version, or returns undefined if it is invalid. Build data after `+` is ignored. */
export function parseVersion(text: string): Version | undefined {
  if (text.length > knownLengthMax) return readVersion(text);
  if (known.has(text)) return known.get(text);
  const version = readVersion(text);
  if (known.size >= knownMax) known.clear();
  known.set(text, version);
  return version;
}

function readVersion(text: string): Version | undefined {
  const bare = withoutPrefix(text).split("+", 1)[0] ?? "";
  if (bare.length > lengthMax) return undefined;
  const dash = bare.indexOf("-");
  const numbers = dash < 0 ? bare : bare.slice(0, dash);
  if (!mainPart.test(numbers)) return undefined;
  const [major, minor = "0", patch = "0"] = numbers.split(".");
  const release = dash < 0 ? released : preRelease(bare.slice(dash));
  return release && { main: [getPart(major!), getPart(minor), getPart(patch)], release };
}

/** Negative when `a` is older, 0 when they are equal. */
export function compareVersions(a: Version, b: Version): number {
  for (let index = 0; index < 3; index += 1) {
    const part = a.main[index]!;
    const other = b.main[index]!;
    if (part < other) return -1;
    if (part > other) return 1;
  }
  return a.release.comparePre(b.release);
}

/** Same minor version, not older: `~1.2.3` is 1.2.3 to below 1.3.0. */
export function tildeRange(text: string): VersionRange | undefined {
  const from = parseVersion(text);
  return from && rangeFrom(from, 1);
}

/** Same left-most non-zero number, not older: `^0.2.3` is 0.2.3 to below 0.3.0. */
export function caretRange(text: string): VersionRange | undefined {
  const from = parseVersion(text);
  if (from === undefined) return undefined;
  const first = from.main.findIndex((part) => part > 0);
  return rangeFrom(from, first < 0 ? 2 : first);
}

/** `1.*`, `1.2.*`, `1.*.*` or `*`; a number after a star invalidates the pattern. `"any"` is every version. */
export function wildcardRange(text: string): VersionRange | "any" | undefined {
  const parts = withoutPrefix(text).split(".");
  const firstStar = parts.indexOf("*");
  if (firstStar < 0 || parts.length > 3) return undefined;
  if (parts.slice(firstStar).some((part) => part !== "*")) return undefined;
  if (firstStar === 0) return "any";
  const from = parseVersion(parts.slice(0, firstStar).join("."));
  if (from === undefined || from.release !== released) return undefined;
  return rangeFrom(from, firstStar - 1);
}

export function isInRange(version: Version, within: VersionRange): boolean {
  return compareVersions(version, within.from) >= 0 && compareVersions(version, within.below) < 0;
}

function withoutPrefix(text: string): string {
  const trimmed = text.trim();
  return trimmed.startsWith("v") || trimmed.startsWith("V") ? trimmed.slice(1) : trimmed;
}

/** Up to the next value of the number at `index`. */
function rangeFrom(from: Version, index: number): VersionRange {
  const at = (position: number): Part =>
    position < index
      ? from.main[position]!
      : position === index
        ? safePart(BigInt(from.main[position]!) + 1n)
        : 0;
  return { from, below: { main: [at(0), at(1), at(2)], release: released } };
}

function getPart(digits: string): Part {
  const part = Number(digits);
  return Number.isSafeInteger(part) ? part : BigInt(digits);
}

function safePart(part: bigint): Part {
  return part <= Number.MAX_SAFE_INTEGER ? Number(part) : part;
}

/** @param text including its dash. */
function preRelease(text: string): SemVer | undefined {
  try {
    return new SemVer(`0.0.0${text}`);
  } catch {
    // The constructor is the library's only parser that rejects such text, and it does so by throwing.
    return undefined;
  }
}
