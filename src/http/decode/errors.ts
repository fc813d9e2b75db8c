/** Errors that reject a whole request. Single events are dropped instead, see `outcome.ts`. */

import { AppError } from "../../lib/errors.ts";

/** A request that the client must change before a retry. The client receives `message`. */
export abstract class RequestRejectedError extends AppError {
  abstract readonly status: 400 | 401 | 408 | 413;
  abstract readonly type: "validation_error" | "authentication_error";
}

/** The body cannot be decoded, is not JSON, or has none of the accepted shapes. */
export class InvalidPayloadError extends RequestRejectedError {
  readonly code = "invalid_payload";
  readonly status = 400;
  readonly type = "validation_error";
}

/** No body, or an empty one after decoding. */
export class EmptyPayloadError extends InvalidPayloadError {
  constructor() {
    super("request missing data payload: send the JSON of an event, or of a batch of events");
  }
}

/** One invalid item rejects the whole request. */
export class InvalidItemError extends InvalidPayloadError {
  constructor(
    message: string,
    /** Short code of the fault. */
    readonly reason: "not_an_object" | "invalid_properties" | "nested_too_deep",
  ) {
    super(message);
  }
}

/** The body exceeds the limit, as sent or decompressed. */
export class PayloadTooLargeError extends RequestRejectedError {
  readonly code = "payload_too_large";
  readonly status = 413;
  readonly type = "validation_error";
  constructor(readonly limitBytes: number) {
    super(`maximum event size exceeded: the request is larger than ${limitBytes} bytes`);
  }
}

/** An event whose number of parts is so large that parsing it would take seconds and a hundred times its memory. */
export class PayloadTooComplexError extends RequestRejectedError {
  readonly code = "payload_too_large";
  readonly status = 413;
  readonly type = "validation_error";
  constructor(limit: number) {
    super(`maximum event size exceeded: an event holds more than ${limit} JSON objects and arrays`);
  }
}

/** No valid project key was sent. */
export class InvalidApiKeyError extends RequestRejectedError {
  readonly status = 401;
  readonly type = "authentication_error";
  constructor(
    readonly code: "missing_api_key" | "invalid_api_key",
    message: string,
  ) {
    super(message);
  }
}

/** The client disconnected or stopped before the end of its body. */
export class IncompleteBodyError extends RequestRejectedError {
  readonly code = "request_timeout";
  readonly status = 408;
  readonly type = "validation_error";
  constructor() {
    super("client stopped sending data");
  }
}
