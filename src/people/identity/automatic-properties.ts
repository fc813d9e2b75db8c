/**
 * Person properties that follow from an event without `$set`: where the person came from and what they use.
 *
 * Source: contract, ingestion 12.4 and 15.2.
 */

import { type Members, ParsedMembers } from "../../scan/members.ts";
import { initialName } from "./property-names.ts";

/** Values of some members, and the names of the properties that they are written to. */
export interface PropertyWrites {
  readonly members: Members;
  readonly names: readonly string[];
  readonly places: readonly number[];
}

const operatingSystemNames = ["$os", "$os_name", "$os_version"];

/** Members that name a campaign or a click: properties of events, and parameters of addresses. */
export const campaignNames: readonly string[] = [
  ...["utm_source", "utm_medium", "utm_campaign", "utm_content", "utm_name", "utm_term"],
  ...["gclid", "gad_source", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "twclid"],
  ...["li_fat_id", "mc_cid", "igshid", "ttclid", "rdt_cid", "irclid", "_kx", "epik", "qclid", "sccid"],
];

const copiedNames = [
  ...["$app_build", "$app_name", "$app_namespace", "$app_version"],
  ...["$browser", "$browser_version", "$device_type", "$raw_user_agent", ...operatingSystemNames],
  ...["$current_url", "$pathname", "$referring_domain", "$referrer"],
  ...["$screen_height", "$screen_width", "$viewport_height", "$viewport_width"],
  ...campaignNames,
];

const initialNameOf: ReadonlyMap<string, string> = new Map(
  copiedNames.map((name) => [name, initialName(name)]),
);

const isOperatingSystemName: ReadonlySet<string> = new Set(operatingSystemNames);

/** Libraries that run on a server, as JSON: the operating system they report is the server's. */
const serverLibraries: ReadonlySet<string> = new Set(
  ["python", "node", "edge", "server", "go", "ruby", "php", "java", "dotnet", "elixir", "rs"].map(
    (name) => `"posthog-${name}"`,
  ),
);

/**
 * The automatic properties of an event; whatever the event sets explicitly is left out.
 *
 * @param set     the event's own `$set`.
 * @param setOnce the event's own `$set_once`.
 */
export function automaticProperties(
  members: Members,
  set: Record<string, unknown> | undefined,
  setOnce: Record<string, unknown> | undefined,
): { set: PropertyWrites; setOnce: PropertyWrites } | undefined {
  const copies = copiesOf(members.names);
  if (copies === null) return undefined;
  const isServer = copies.libraryPlace !== -1 && serverLibraries.has(members.text(copies.libraryPlace));
  const { current, initial } = isServer ? copies.ofServer : copies.ofClient;
  if (current.places.length === 0) return undefined;
  return { set: written(members, current, set), setOnce: written(members, initial, setOnce) };
}

/** Names that are written, and the members that give the values. */
type NameList = Pick<PropertyWrites, "names" | "places">;
/** What is written of an event with its own name and with that of the initial property. */
interface Copies {
  readonly current: NameList;
  readonly initial: NameList;
}
interface CopiesByLibrary {
  readonly ofClient: Copies;
  readonly ofServer: Copies;
  /** Of the member that tells which of the two; -1 when they are the same or nothing tells. */
  readonly libraryPlace: number;
}

/** What events with certain names copy; null for nothing. By the list, which many events share. */
const copiesByNames = new WeakMap<readonly string[], CopiesByLibrary | null>();
let lastNames: readonly string[] = [];
let lastCopies: CopiesByLibrary | null = null;

function copiesOf(names: readonly string[]): CopiesByLibrary | null {
  // Looking into the map takes longer than the rest, and one library sends most events.
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
  const found = names.flatMap((name, place) => {
    if (!initialNameOf.has(name)) return [];
    const isOnlySystem = name === "$os_name" && !names.includes("$os");
    return isOnlySystem
      ? [
          { name, place },
          { name: "$os", place },
        ]
      : [{ name, place }];
  });
  if (found.length === 0) return null;
  const ofServer = found.filter(({ name }) => !isOperatingSystemName.has(name));
  const libraryPlace = ofServer.length < found.length ? names.indexOf("$lib") : -1;
  return { ofClient: listed(found), ofServer: listed(ofServer), libraryPlace };
}

function listed(found: readonly { name: string; place: number }[]): Copies {
  const places = found.map(({ place }) => place);
  return {
    current: { names: found.map(({ name }) => name), places },
    initial: { names: found.map(({ name }) => initialNameOf.get(name)!), places },
  };
}

function written(
  members: Members,
  { names, places }: NameList,
  own: Record<string, unknown> | undefined,
): PropertyWrites {
  if (own === undefined || !names.some((name) => Object.hasOwn(own, name))) return { members, names, places };
  const indexes = [...names.keys()].filter((index) => !Object.hasOwn(own, names[index]!));
  return {
    members,
    names: indexes.map((index) => names[index]!),
    places: indexes.map((index) => places[index]!),
  };
}

/** Writes all members under their own names. */
export function allWrites(members: Members): PropertyWrites {
  return { members, names: members.names, places: [...members.names.keys()] };
}

/** When a person last saw a survey; `undefined` for other events and when the event says it itself. */
export function surveyProperties(
  event: string,
  timeMicros: number,
  set: Record<string, unknown> | undefined,
): PropertyWrites | undefined {
  const name = "$survey_last_seen_date";
  if (event !== "survey shown" || (set !== undefined && Object.hasOwn(set, name))) return undefined;
  return allWrites(new ParsedMembers({ [name]: new Date(timeMicros / 1000).toISOString() }));
}
