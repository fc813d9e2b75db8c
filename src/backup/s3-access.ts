/**
 * How an S3-compatible store is reached.
 *
 * Secrets come from the environment or from a file, never from the command line, which every user of the machine can read.
 */

import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { S3Client } from "bun";
import type { Config } from "../config/settings.ts";
import { parseS3Url, type S3Address } from "../lib/s3-address.ts";
import { DestinationFailed } from "./errors.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface S3Settings {
  /** Empty: AWS, or what the environment says. */
  endpoint: string;
  region: string;
  /** A file such as `~/.aws/credentials`; empty: what the environment says. */
  credentialsFile: string;
}

export interface S3Access {
  endpoint?: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

export function s3SettingsOf(config: Config): S3Settings {
  return {
    endpoint: config["backup-s3-endpoint"],
    region: config["backup-s3-region"],
    credentialsFile: config["backup-s3-credentials-file"],
  };
}

/** @throws {DestinationFailed} there are no credentials. */
export function s3AccessFrom(settings: S3Settings, environment: Environment): S3Access {
  return {
    endpoint:
      settings.endpoint || environment.AWS_ENDPOINT_URL_S3 || environment.AWS_ENDPOINT_URL || undefined,
    region: settings.region || environment.AWS_REGION || environment.AWS_DEFAULT_REGION || "us-east-1",
    ...credentials(settings, environment),
  };
}

type Credentials = Pick<S3Access, "accessKeyId" | "secretAccessKey" | "sessionToken">;

function credentials({ credentialsFile }: S3Settings, environment: Environment): Credentials {
  const own = pair(
    environment.FLAGKEEP_BACKUP_S3_ACCESS_KEY_ID,
    environment.FLAGKEEP_BACKUP_S3_SECRET_ACCESS_KEY,
  );
  if (own !== undefined) return own;
  if (credentialsFile !== "") {
    const found = fromFile(credentialsFile, environment);
    if (found !== undefined) return found;
    throw new DestinationFailed(
      `${credentialsFile} holds no aws_access_key_id and aws_secret_access_key.`,
      "Write them below a line [default].",
    );
  }
  const usual = pair(environment.AWS_ACCESS_KEY_ID, environment.AWS_SECRET_ACCESS_KEY);
  if (usual !== undefined) return { ...usual, sessionToken: environment.AWS_SESSION_TOKEN || undefined };
  const shared = environment.AWS_SHARED_CREDENTIALS_FILE || join(homedir(), ".aws", "credentials");
  const found = fromFile(shared, environment);
  if (found !== undefined) return found;
  throw new DestinationFailed(
    "There are no credentials for S3.",
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or --backup-s3-credentials-file.",
  );
}

function pair(accessKeyId: string | undefined, secretAccessKey: string | undefined): Credentials | undefined {
  return accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined;
}

/** The profile's lines of a file as the AWS tools keep it; undefined when there is no such file. */
function fromFile(path: string, environment: Environment): Credentials | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  const profile = environment.AWS_PROFILE || "default";
  const values: Record<string, string> = {};
  let isOurs = false;
  for (const line of text.split("\n")) {
    const section = /^\s*\[([^\]]+)\]/.exec(line);
    if (section !== null) isOurs = section[1]!.trim() === profile;
    const entry = /^\s*(aws_\w+)\s*=\s*(\S+)\s*$/.exec(line);
    if (isOurs && entry !== null) values[entry[1]!] = entry[2]!;
  }
  const found = pair(values.aws_access_key_id, values.aws_secret_access_key);
  return found === undefined ? undefined : { ...found, sessionToken: values.aws_session_token };
}

export interface S3Place extends S3Address {
  client: S3Client;
}

/** Opens `s3://bucket/key`. @throws {DestinationFailed} */
export function s3Place(url: string, access: S3Access): S3Place {
  const address = parseS3Url(url);
  if (address === undefined) {
    throw new DestinationFailed(`${url} is no place in S3.`, "Write it as s3://bucket/prefix.");
  }
  return { ...address, client: new Bun.S3Client({ ...access, bucket: address.bucket }) };
}

const attemptsMax = 3;
const firstPauseMs = 200;

/**
 * Asks a store, and again a little later when it fails: one that is asked too much says so, and means it for a moment.
 *
 * @param isAnswer says of an error that asking again would change nothing.
 */
export async function askStore<Answer>(
  ask: () => Promise<Answer>,
  isAnswer: (error: unknown) => boolean = () => false,
): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      if (attempt === attemptsMax || isAnswer(error)) throw error;
      await Bun.sleep(firstPauseMs * attempt);
    }
  }
}

const messageLengthMax = 500;

/** One sentence about what a store answered. */
export function s3Failure(what: string, error: unknown): DestinationFailed {
  const { code, message } = error as { code?: string; message?: string };
  // What is no store, such as a gateway before it, answers with a page.
  const told = (message ?? String(error)).replaceAll(/\s+/g, " ").slice(0, messageLengthMax);
  return new DestinationFailed(`${what} failed (${code ?? "error"}: ${told}).`);
}
