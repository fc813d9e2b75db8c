/**
 * Applies an event to group types and groups. Pure over `GroupState`. Source: contract, ingestion 14; decisions 1, 6
 * and 7a for the rest.
 */

import type { JournalEvent } from "../../journal/entry.ts";
import { allWrites } from "./automatic-properties.ts";
import { ingestionWarning, truncatedString, type Warning } from "./ingestion-warning.ts";
import type { Operations } from "./operations.ts";
import { PropertyState, propertyBytesMax } from "./property-state.ts";

/** A group during a batch. */
export interface Group {
  projectId: number;
  typeIndex: number;
  key: string;
  createdMicros: number;
  version: number;
  bag: PropertyState;
  isNew: boolean;
  isDirty: boolean;
}

export interface NewGroupType {
  projectId: number;
  typeIndex: number;
  name: string;
  createdMicros: number;
}

/** The group types and groups touched by a batch of events, in memory. */
export class GroupState {
  readonly newTypes: NewGroupType[] = [];
  private readonly typeIndexes = new Map<number, Map<string, number>>();
  private readonly byTypeAndKey = new Map<string, Group>();

  addStoredType(projectId: number, name: string, typeIndex: number): void {
    this.typesOf(projectId).set(name, typeIndex);
  }

  add(group: Group): void {
    this.byTypeAndKey.set(groupId(group.projectId, group.typeIndex, group.key), group);
  }

  get groups(): Iterable<Group> {
    return this.byTypeAndKey.values();
  }

  typeIndex(projectId: number, name: string): number | undefined {
    return this.typeIndexes.get(projectId)?.get(name);
  }

  /** The index of a type; new types get the next one. A project may have any number of types. */
  allocateType(projectId: number, name: string, createdMicros: number): number {
    const types = this.typesOf(projectId);
    const known = types.get(name);
    if (known !== undefined) return known;
    const typeIndex = types.size;
    types.set(name, typeIndex);
    this.newTypes.push({ projectId, typeIndex, name, createdMicros });
    return typeIndex;
  }

  find(projectId: number, typeIndex: number, key: string): Group | undefined {
    return this.byTypeAndKey.get(groupId(projectId, typeIndex, key));
  }

  /** Creates a group without properties. */
  create(projectId: number, typeIndex: number, key: string, createdMicros: number): Group {
    const bag = new PropertyState();
    const group = { projectId, typeIndex, key, createdMicros, version: 0, bag, isNew: true, isDirty: true };
    this.add(group);
    return group;
  }

  private typesOf(projectId: number): Map<string, number> {
    let types = this.typeIndexes.get(projectId);
    if (types === undefined) {
      types = new Map();
      this.typeIndexes.set(projectId, types);
    }
    return types;
  }
}

/** Applies the group operations of one event; returns the resulting warnings. */
export function applyToGroups(state: GroupState, event: JournalEvent, operations: Operations): Warning[] {
  for (const type of operations.groupTypes) state.allocateType(event.projectId, type, event.receivedMicros);
  const { groupIdentify } = operations;
  if (groupIdentify === undefined) return [];
  const typeIndex = state.allocateType(event.projectId, groupIdentify.type, event.receivedMicros);
  const { projectId, timeMicros } = event;
  const known = state.find(projectId, typeIndex, groupIdentify.key);
  const group = known ?? state.create(projectId, typeIndex, groupIdentify.key, timeMicros);
  const { changes, touches, rejections } = group.bag;
  const { properties } = groupIdentify;
  group.bag.setMembers(allWrites(properties), event);
  if (group.bag.touches !== touches) group.isDirty = true;
  if (group.bag.changes !== changes && known !== undefined) group.version += 1;
  if (group.bag.rejections === rejections) return [];
  const details = {
    groupType: truncatedString(groupIdentify.type),
    groupKey: truncatedString(groupIdentify.key),
    bytesMax: propertyBytesMax,
  };
  return [ingestionWarning(event, "group_properties_size_violation", details)];
}

function groupId(projectId: number, typeIndex: number, key: string): string {
  return `${projectId}:${typeIndex}:${key}`;
}
