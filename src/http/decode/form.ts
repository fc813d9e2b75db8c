/**
 * Parses `name=value&name=value` of a query or a form body.
 *
 * Works on bytes and knows only the few fields of capture: a `data` field can have 20 MiB.
 */

const ampersandByte = 38;
const equalsByte = 61;
const percent = 37;
const plus = 43;
const space = 32;

/** The first known field of a form must be within these bytes (contract: ingestion 2.3). */
const sniffedBytes = 128;
const formMark = /(?:^|&)(?:data|_|ip|compression)=/;

/** Fields that clients send next to or around their events, in a query or a form. */
export interface CaptureFields {
  /** The payload: percent-decoded, not decoded further. */
  readonly data?: Uint8Array;
  readonly compression?: string;
  /** `"1"` from browsers that are leaving the page and do not read responses. */
  readonly beacon?: string;
  /** When the request was sent; browsers call it `_`. */
  readonly sentAt?: string;
  /** Project key, from very old clients. */
  readonly token?: string;
}

const fieldNames = new Set(["data", "compression", "beacon", "sent_at", "_", "api_key", "token"]);
const noFields: CaptureFields = {};
/** Most URLs have a query without any of these. */
const hasField = /[?&](?:data|compression|beacon|sent_at|_|api_key|token)=/;

/** The fields in the query of a URL; all are optional, unknown ones are ignored. */
export function queryFields(url: string): CaptureFields {
  const mark = url.indexOf("?");
  if (mark === -1 || !hasField.test(url)) return noFields;
  const hash = url.indexOf("#", mark);
  return readFields(Buffer.from(hash === -1 ? url.slice(mark + 1) : url.slice(mark + 1, hash)));
}

/** Whether the bytes start like a form of a capture client, whatever their content type. */
export function looksLikeForm(bytes: Uint8Array): boolean {
  return formMark.test(latin1(bytes, sniffedBytes));
}

/** The fields of a form. The first of a repeated field counts; malformed percent signs are literal. */
export function readFields(form: Uint8Array): CaptureFields {
  const found = new Map<string, Uint8Array>();
  for (let start = 0; start <= form.length; ) {
    const ampersand = form.indexOf(ampersandByte, start);
    const end = ampersand === -1 ? form.length : ampersand;
    // No known field has a longer name, which bounds the search in any body.
    const equals = form.subarray(start, Math.min(end, start + "compression=".length)).indexOf(equalsByte);
    if (equals !== -1) {
      const name = latin1(form.subarray(start, start + equals));
      if (fieldNames.has(name) && !found.has(name)) found.set(name, form.subarray(start + equals + 1, end));
    }
    start = end + 1;
  }
  const text = (name: string) => {
    const value = found.get(name);
    return value === undefined ? undefined : Buffer.from(percentDecoded(value, true)).toString();
  };
  const data = found.get("data");
  return {
    data: data && getPayload(data),
    compression: text("compression"),
    beacon: text("beacon"),
    sentAt: text("sent_at") || text("_"),
    token: text("api_key") || text("token"),
  };
}

/** In base64 a `+` is a digit, and a space is an unescaped `+`; in plain JSON a `+` is a space. */
function getPayload(value: Uint8Array): Uint8Array {
  const plusIsSpace = /^\s*[[{]/.test(latin1(percentDecoded(value.subarray(0, sniffedBytes), true)));
  const payload = percentDecoded(value, plusIsSpace);
  if (!plusIsSpace && isBase64Text(payload)) {
    for (let at = payload.indexOf(space); at !== -1; at = payload.indexOf(space, at + 1)) payload[at] = plus;
  }
  return payload;
}

const base64Start = /^[A-Za-z0-9+/=_ -]+\s*$/;

/** Whether the first bytes could be base64; spaces count as the `+` they were. */
function isBase64Text(bytes: Uint8Array): boolean {
  return base64Start.test(latin1(bytes, sniffedBytes));
}

function percentDecoded(value: Uint8Array, plusIsSpace: boolean): Uint8Array {
  const out = new Uint8Array(value.length);
  let length = 0;
  for (let at = 0; at < value.length; at++) {
    let byte = value[at]!;
    if (byte === percent) {
      const high = hex[value[at + 1] ?? 0]!;
      const low = hex[value[at + 2] ?? 0]!;
      if (high < 16 && low < 16) {
        byte = high * 16 + low;
        at += 2;
      }
    } else if (byte === plus && plusIsSpace) {
      byte = space;
    }
    out[length++] = byte;
  }
  return out.subarray(0, length);
}

const hex = new Uint8Array(256).fill(255);
for (let digit = 0; digit < 16; digit++) {
  hex[digit.toString(16).charCodeAt(0)] = digit;
  hex[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
}

function latin1(bytes: Uint8Array, limit = bytes.length): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, limit)).toString("latin1");
}
