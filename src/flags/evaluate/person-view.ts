/**
 * The properties of one person or group as seen by one request.
 *
 * Looks values up in their sources instead of merging objects: a stored person may have hundreds of properties, a flag
 * uses two.
 */

import { getOwnProperty, type Json, type JsonObject } from "../../lib/json/value.ts";

/** Source of a value, for explanations. */
export type PropertySource = "stored" | "override" | "request" | "geoip" | "derived" | "missing";

export interface PropertyView {
  /** The value, null included; undefined for a missing property. */
  get(name: string): Json | undefined;
  findSource(name: string): PropertySource;
}

type Properties = Readonly<JsonObject> | null | undefined;

// Ingestion also copies `utm_name` and `$os_name`, but upstream does not derive these two here.
const firstSeenSources = [
  "$app_build $app_name $app_namespace $app_version $browser $browser_version $device_type $current_url $pathname $os",
  "$os_version $referring_domain $referrer $screen_height $screen_width $viewport_height $viewport_width",
  "$raw_user_agent utm_source utm_medium utm_campaign utm_content utm_term gclid gad_source gclsrc dclid gbraid wbraid",
  "fbclid msclkid twclid li_fat_id mc_cid igshid ttclid rdt_cid irclid _kx epik qclid sccid",
].flatMap((names) => names.split(" "));

/** `$initial_browser` → `$browser`. Source: contract, flag-evaluation 9, ingestion 12.4. */
const firstSeenSource = new Map(
  firstSeenSources.map((name) => [`$initial_${name.replace(/^\$/, "")}`, name]),
);

/** The property from which a missing `$initial_…` is derived; undefined for other names. */
export function sourceOfInitial(name: string): string | undefined {
  return name.startsWith("$initial_") ? firstSeenSource.get(name) : undefined;
}

/**
 * A person's properties: overrides of the request, then `distinct_id` of the request, then stored ones; `$geoip_…`
 * replaces missing or null values; a missing `$initial_…` is derived from the current value.
 *
 * Source: contract, flag-evaluation 9.
 */
export class PersonView implements PropertyView {
  constructor(
    private readonly distinctId: string | undefined,
    private readonly stored: Properties,
    private readonly overrides: Properties,
    private readonly geoip?: Properties,
  ) {}

  get(name: string): Json | undefined {
    const override = this.getOverride(name);
    if (name.charCodeAt(0) !== dollar || (override !== undefined && override !== null)) return override;
    const located = name.startsWith("$geoip_") ? getOwnProperty(this.geoip, name) : undefined;
    if (located !== undefined || override === null) return located ?? override;
    const source = sourceOfInitial(name);
    return source === undefined ? undefined : this.get(source);
  }

  findSource(name: string): PropertySource {
    const override = this.getOverride(name);
    if (override === undefined || override === null) {
      if (name.startsWith("$geoip_") && getOwnProperty(this.geoip, name) !== undefined) return "geoip";
      if (override === undefined) return this.get(name) === undefined ? "missing" : "derived";
    }
    if (getOwnProperty(this.overrides, name) !== undefined) return "override";
    return name === "distinct_id" && this.distinctId !== undefined ? "request" : "stored";
  }

  private getOverride(name: string): Json | undefined {
    const override = getOwnProperty(this.overrides, name);
    if (override !== undefined) return override;
    if (name === "distinct_id" && this.distinctId !== undefined) return this.distinctId;
    return getOwnProperty(this.stored, name);
  }
}

const dollar = 36;

/** A group's properties: `$group_key` of the request, then its overrides, then stored ones. */
export class GroupView implements PropertyView {
  constructor(
    private readonly key: Json | undefined,
    private readonly stored: Properties,
    private readonly overrides: Properties,
  ) {}

  get(name: string): Json | undefined {
    if (name === "$group_key" && this.key !== undefined) return this.key;
    const override = getOwnProperty(this.overrides, name);
    return override !== undefined ? override : getOwnProperty(this.stored, name);
  }

  findSource(name: string): PropertySource {
    if (name === "$group_key" && this.key !== undefined) return "request";
    if (getOwnProperty(this.overrides, name) !== undefined) return "override";
    return getOwnProperty(this.stored, name) === undefined ? "missing" : "stored";
  }
}
