/**
 * Person properties that follow from an event without `$set`: where the person came from and what they use.
 *
 * Source: contract, ingestion 12.4 and 15.2.
 */

/** New values by property name. */
export type PropertyWrites = Record<string, unknown>;

const operatingSystemNames = ["$os", "$os_name", "$os_version"];

const copiedNames = [
  ...["$app_build", "$app_name", "$app_namespace", "$app_version"],
  ...["$browser", "$browser_version", "$device_type", "$raw_user_agent", ...operatingSystemNames],
  ...["$current_url", "$pathname", "$referring_domain", "$referrer"],
  ...["$screen_height", "$screen_width", "$viewport_height", "$viewport_width"],
  ...["utm_source", "utm_medium", "utm_campaign", "utm_content", "utm_name", "utm_term"],
  ...["gclid", "gad_source", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "twclid"],
  ...["li_fat_id", "mc_cid", "igshid", "ttclid", "rdt_cid", "irclid", "_kx", "epik", "qclid", "sccid"],
];

const initialNameOf: ReadonlyMap<string, string> = new Map(
  copiedNames.map((name) => [name, `$initial_${name.replace(/^\$/, "")}`]),
);

const isOperatingSystemName: ReadonlySet<string> = new Set(operatingSystemNames);

/** Libraries that run on a server: the operating system they report is the server's. */
const serverLibraries: ReadonlySet<unknown> = new Set(
  ["python", "node", "edge", "server", "go", "ruby", "php", "java", "dotnet", "elixir", "rs"].map(
    (name) => `posthog-${name}`,
  ),
);

/**
 * The automatic properties of an event; whatever the event sets explicitly is left out.
 *
 * @param set     the event's own `$set`.
 * @param setOnce the event's own `$set_once`.
 */
export function automaticProperties(
  properties: Record<string, unknown>,
  set: PropertyWrites | undefined,
  setOnce: PropertyWrites | undefined,
): { set: PropertyWrites; setOnce: PropertyWrites } | undefined {
  const isServer = serverLibraries.has(properties.$lib);
  let found: { set: PropertyWrites; setOnce: PropertyWrites } | undefined;
  for (const name in properties) {
    const initialName = initialNameOf.get(name);
    if (initialName === undefined || (isServer && isOperatingSystemName.has(name))) continue;
    found ??= { set: {}, setOnce: {} };
    const value = properties[name];
    copy(found, name, initialName, value, set, setOnce);
    if (name === "$os_name" && !Object.hasOwn(properties, "$os"))
      copy(found, "$os", "$initial_os", value, set, setOnce);
  }
  return found;
}

function copy(
  found: { set: PropertyWrites; setOnce: PropertyWrites },
  name: string,
  initialName: string,
  value: unknown,
  set: PropertyWrites | undefined,
  setOnce: PropertyWrites | undefined,
): void {
  if (set === undefined || !Object.hasOwn(set, name)) found.set[name] = value;
  if (setOnce === undefined || !Object.hasOwn(setOnce, initialName)) found.setOnce[initialName] = value;
}

/** When a person last saw a survey; `undefined` for other events and when the event says it itself. */
export function surveyProperties(
  event: string,
  timeMicros: number,
  set: PropertyWrites | undefined,
): PropertyWrites | undefined {
  const name = "$survey_last_seen_date";
  if (event !== "survey shown" || (set !== undefined && Object.hasOwn(set, name))) return undefined;
  return { [name]: new Date(timeMicros / 1000).toISOString() };
}
