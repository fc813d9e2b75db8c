/**
 * Person properties derived from an event without `$set`: where the person came from and what they use. Source:
 * contract, ingestion 12.4 and 15.2.
 */

import { type Members, ParsedMembers } from "../../scan/members.ts";
import { initialName } from "./property-names.ts";

/** Values of members by position, and the property names they are written to. */
export interface PropertyWrites {
  readonly members: Members;
  readonly names: readonly string[];
  readonly indexes: readonly number[];
}

const operatingSystemNames = ["$os", "$os_name", "$os_version"];

/** Members that name a campaign or a click: event properties, and URL parameters. */
export const campaignNames: readonly string[] = [
  "utm_source",
  "utm_medium",
  "utm_campaign",
  "utm_content",
  "utm_name",
  "utm_term",
  "gclid",
  "gad_source",
  "gclsrc",
  "dclid",
  "gbraid",
  "wbraid",
  "fbclid",
  "msclkid",
  "twclid",
  "li_fat_id",
  "mc_cid",
  "igshid",
  "ttclid",
  "rdt_cid",
  "irclid",
  "_kx",
  "epik",
  "qclid",
  "sccid",
];

const copiedNames = [
  "$app_build",
  "$app_name",
  "$app_namespace",
  "$app_version",
  "$browser",
  "$browser_version",
  "$device_type",
  "$raw_user_agent",
  ...operatingSystemNames,
  "$current_url",
  "$pathname",
  "$referring_domain",
  "$referrer",
  "$screen_height",
  "$screen_width",
  "$viewport_height",
  "$viewport_width",
  ...campaignNames,
];

const initialNames: ReadonlyMap<string, string> = new Map(
  copiedNames.map((name) => [name, initialName(name)]),
);

const isOperatingSystemName: ReadonlySet<string> = new Set(operatingSystemNames);

/** Server-side libraries, as JSON: they report the server's operating system. */
const serverLibraries: ReadonlySet<string> = new Set(
  ["python", "node", "edge", "server", "go", "ruby", "php", "java", "dotnet", "elixir", "rs"].map(
    (name) => `"posthog-${name}"`,
  ),
);

/**
 * The automatic properties of an event, without those that the event sets explicitly.
 * @param set the event's `$set` @param setOnce the event's `$set_once`
 */
export function automaticProperties(
  members: Members,
  set: Record<string, unknown> | undefined,
  setOnce: Record<string, unknown> | undefined,
): { set: PropertyWrites; setOnce: PropertyWrites } | undefined {
  const copies = getCopies(members.names);
  if (copies === null) return undefined;
  const isServer = copies.libraryIndex !== -1 && serverLibraries.has(members.text(copies.libraryIndex));
  const { current, initial } = isServer ? copies.ofServer : copies.ofClient;
  if (current.indexes.length === 0) return undefined;
  return { set: written(members, current, set), setOnce: written(members, initial, setOnce) };
}

/** Target names and positions of the source members. */
type NameList = Pick<PropertyWrites, "names" | "indexes">;
/** What an event writes to current and to initial properties. */
interface Copies {
  readonly current: NameList;
  readonly initial: NameList;
}
interface CopiesByLibrary {
  readonly ofClient: Copies;
  readonly ofServer: Copies;
  /** Position of the member that selects the variant; -1 if both are equal or the member is absent. */
  readonly libraryIndex: number;
}

/** Copies by list of names, which many events share; null for nothing. */
const copiesByNames = new WeakMap<readonly string[], CopiesByLibrary | null>();
let lastNames: readonly string[] = [];
let lastCopies: CopiesByLibrary | null = null;

function getCopies(names: readonly string[]): CopiesByLibrary | null {
  // A map lookup takes longer than the rest, and one library sends most events.
  if (names === lastNames) return lastCopies;
  let copies = copiesByNames.get(names);
  if (copies === undefined) {
    copies = findCopies(names);
    copiesByNames.set(names, copies);
  }
  lastNames = names;
  lastCopies = copies;
  return copies;
}

function findCopies(names: readonly string[]): CopiesByLibrary | null {
  const found = names.flatMap((name, index) => {
    if (!initialNames.has(name)) return [];
    const isOnlySystem = name === "$os_name" && !names.includes("$os");
    return isOnlySystem
      ? [
          { name, index },
          { name: "$os", index },
        ]
      : [{ name, index }];
  });
  if (found.length === 0) return null;
  const ofServer = found.filter(({ name }) => !isOperatingSystemName.has(name));
  const libraryIndex = ofServer.length < found.length ? names.indexOf("$lib") : -1;
  return { ofClient: listed(found), ofServer: listed(ofServer), libraryIndex: libraryIndex };
}

function listed(found: readonly { name: string; index: number }[]): Copies {
  const indexes = found.map(({ index }) => index);
  return {
    current: { names: found.map(({ name }) => name), indexes },
    initial: { names: found.map(({ name }) => initialNames.get(name)!), indexes },
  };
}

function written(
  members: Members,
  { names, indexes: memberIndexes }: NameList,
  own: Record<string, unknown> | undefined,
): PropertyWrites {
  if (own === undefined || !names.some((name) => Object.hasOwn(own, name)))
    return { members, names, indexes: memberIndexes };
  const present = [...names.keys()].filter((index) => !Object.hasOwn(own, names[index]!));
  return {
    members,
    names: present.map((index) => names[index]!),
    indexes: present.map((index) => memberIndexes[index]!),
  };
}

/** Writes all members under their own names. */
export function allWrites(members: Members): PropertyWrites {
  return { members, names: members.names, indexes: [...members.names.keys()] };
}

/** When a person last saw a survey; undefined for other events and if the event sets it explicitly. */
export function surveyProperties(
  event: string,
  timeMicros: number,
  set: Record<string, unknown> | undefined,
): PropertyWrites | undefined {
  const name = "$survey_last_seen_date";
  if (event !== "survey shown" || (set !== undefined && Object.hasOwn(set, name))) return undefined;
  return allWrites(new ParsedMembers({ [name]: new Date(timeMicros / 1000).toISOString() }));
}
