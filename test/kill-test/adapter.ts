/** What the kill test must be told of a server: how to start it, how to send, and how to read everything back. */

import type { Stored } from "./checker.ts";

export interface Adapter {
  /** Makes what the first start needs in an empty folder; may be left out. */
  prepare?(folder: string): Promise<void>;
  /** Starts the server on the folder; resolves when it takes events. */
  start(folder: string): Promise<RunningServer>;
}

export interface RunningServer {
  /** The processes to kill; asked for at that moment. */
  pids(): Promise<number[]>;
  /**
   * Sends events in one request.
   *
   * @returns whether the server has said that it has them. Throws when there is no answer.
   */
  send(events: readonly SentEvent[], historical: boolean): Promise<boolean>;
  /** Resolves with everything stored, in the order of storage, once all that was acknowledged can be read. */
  stored(): Promise<Stored[]>;
  stop(): Promise<void>;
}

export interface SentEvent {
  /** A version 7 uuid; who sends an event again sends it with the same. */
  id: string;
  sender: string;
  number: number;
  /** Anything; its digest is compared at the end. */
  text: string;
}

/** Of the text of an event. */
export const getDigest = (text: string): string => Bun.hash.xxHash64(text).toString(16);
