/**
 * Imports the valid parts of a flag and reports the others: a flag that cannot be imported completely never stops the
 * file.
 *
 * Source: contract, import 3 (F1 to F4).
 */

import { isJsonObject, type Json } from "../../lib/json/value.ts";
import { exactProperty } from "../../lib/operators.ts";
import { getMisfits } from "../rules/condition-rules.ts";
import { mapProperties } from "../rules/stored-filters.ts";
import { redactedPayload } from "../rules/types.ts";
import type { FlagItem } from "./document.ts";

/** The part of an obstacle that prevents the import of the whole flag. */
export const wholeFlag = "the flag";

/** A part of a flag that is not imported, and why. */
export interface Obstacle {
  part: string;
  reason: string;
}

export interface FlagWriter {
  /** Whether the project has no flag with this key. */
  isNew: boolean;
  /** Whether the project's flag has encrypted payloads, which a placeholder in the file represents. */
  hasSecrets: boolean;
  /** Writes the flag. @returns why it is rejected; then nothing was changed. */
  write(item: FlagItem, isSwitchedOff: boolean): string | undefined;
  /** Like `write`, but never changes anything. */
  check(item: FlagItem): string | undefined;
}

/**
 * Writes a flag; invalid condition sets are omitted, and the flag is then switched off.
 *
 * @param lost          parts that are imported, and match other users than in the source.
 * @param isSwitchedOff whether something of it was lost earlier.
 * @returns the parts that were not imported; empty if all were.
 */
export function writeFlagInPart(
  sent: FlagItem,
  lost: readonly Obstacle[],
  isSwitchedOff: boolean,
  writer: FlagWriter,
): Obstacle[] {
  const { item, obstacles } = withoutHiddenPayloads(withExactValues(sent), writer.hasSecrets);
  obstacles.push(...lost, ...unmatchable(item));
  const isOff = () => isSwitchedOff || obstacles.length > 0;
  const whole = writer.write(item, isOff());
  if (whole === undefined) return obstacles;
  const { filters } = item;
  const groups = Array.isArray(filters?.groups) ? filters.groups : [];
  const with_ = (preserved: Json[]): FlagItem => ({ ...item, filters: { ...filters, groups: preserved } });
  if (writer.check(with_([])) === undefined) {
    const preserved = groups.filter((group, index) => {
      const reason = writer.check(with_([group]));
      if (reason !== undefined) addObstacle(obstacles, { part: `rule ${index + 1}`, reason });
      return reason === undefined;
    });
    if (writer.write(with_(preserved), true) === undefined) {
      // Every condition set is valid alone, or the value is not a list.
      if (preserved.length === groups.length) addObstacle(obstacles, { part: "its filters", reason: whole });
      return obstacles;
    }
  }
  // The problem is outside of the condition sets. An existing flag stays unchanged.
  const isRetained =
    writer.isNew && writer.write({ key: item.key, filters: { groups: [] } }, true) === undefined;
  addObstacle(obstacles, { part: isRetained ? "its filters" : wholeFlag, reason: whole });
  return obstacles;
}

function addObstacle(obstacles: Obstacle[], obstacle: Obstacle): void {
  const { part, reason } = obstacle;
  if (!obstacles.some((known) => known.part === part && known.reason === reason)) obstacles.push(obstacle);
}

/** Removes placeholders of encrypted payloads; a flag that has encrypted payloads keeps them. */
function withoutHiddenPayloads(
  item: FlagItem,
  hasSecrets: boolean,
): { item: FlagItem; obstacles: Obstacle[] } {
  const payloads = item.filters?.payloads;
  if (hasSecrets || !isJsonObject(payloads)) return { item, obstacles: [] };
  const isHidden = (value: unknown) => value === redactedPayload || value === JSON.parse(redactedPayload);
  const shown = Object.entries(payloads).filter(([, value]) => !isHidden(value));
  const hidden = Object.entries(payloads).filter(([, value]) => isHidden(value));
  if (hidden.length === 0) return { item, obstacles: [] };
  const obstacles = hidden.map(([key]) => ({
    part: `payload of ${key}`,
    reason: "it is encrypted and not in the file; export it with --with-secrets",
  }));
  const { has_encrypted_payloads: _, ...members } = item;
  return {
    item: { ...members, filters: { ...item.filters, payloads: Object.fromEntries(shown) } } as FlagItem,
    obstacles,
  };
}

/** Conditions that are kept but can never match. */
function unmatchable({ filters }: FlagItem): Obstacle[] {
  const groups = Array.isArray(filters?.groups) ? filters.groups : [];
  return groups.flatMap((group, index) => {
    if (!isJsonObject(group) || !Array.isArray(group.properties)) return [];
    return getMisfits({ groups: [group] }).map((reason) => ({
      part: `rule ${index + 1}`,
      reason: reason.replace(/^groups\[0\]\.properties\[\d+\]\.value: /, ""),
    }));
  });
}

/** A flag with filter values in the form that their operator accepts, if that is equivalent (F2). */
function withExactValues(item: FlagItem): FlagItem {
  if (item.filters === null) return item;
  const lists = ["groups", "super_groups", "holdout_groups"] as const;
  const filters = lists.reduce((changed, list) => mapProperties(changed, list, exactProperty), item.filters);
  return { ...item, filters };
}
