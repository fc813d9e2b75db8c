/** The form of a webhook. */

import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog.tsx";
import { Area, Checkbox, Field, Select } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { ApiError, request, toApiError } from "../../lib/api.ts";
import type { Webhook as ListedWebhook, WebhookWithSecret } from "../../lib/api-types.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";

const w = messages.webhooks;

/** The secret is only in the response to creating it. */
export type Webhook = ListedWebhook & Partial<WebhookWithSecret>;

const eventNames = Object.keys(w.eventNames).filter((name) => name !== "test");
const firstEvents = ["flag_changed", "change_request_opened", "change_request_decided", "spike"];
const firstTemplate = '{"text": "{{text}} {{url}}"}';

export function WebhookForm({
  hook,
  onClose,
  onSaved,
}: {
  /** Undefined: a new one. */
  hook: Webhook | undefined;
  onClose: () => void;
  onSaved: (saved: Webhook) => void;
}) {
  const [url, setUrl] = useState(hook?.url ?? "");
  const [name, setName] = useState(hook?.name ?? "");
  const [format, setFormat] = useState(hook?.format ?? "auto");
  const [template, setTemplate] = useState(
    hook?.template ? JSON.stringify(hook.template, null, 2) : firstTemplate,
  );
  const [events, setEvents] = useState<readonly string[]>(hook?.events ?? firstEvents);
  const [failure, setFailure] = useState<ApiError>();
  const fields = ["url", "name", "template"];
  const getError = (field: string) => (failure?.attr === field ? failure.detail : undefined);
  const save = async () => {
    setFailure(undefined);
    try {
      const body = {
        url: url.trim(),
        name,
        events,
        ...(format === "auto" ? {} : { format }),
        ...(format === "custom" ? { template: parsed(template) } : {}),
      };
      const saved =
        hook === undefined
          ? await request<Webhook>(inProject("webhooks/"), { method: "POST", body })
          : await request<Webhook>(inProject(`webhooks/${hook.id}/`), { method: "PATCH", body });
      onSaved(saved);
    } catch (error) {
      setFailure(toApiError(error));
    }
  };
  const formats = Object.entries(w.formats).filter(([one]) => hook === undefined || one !== "auto");
  return (
    <Dialog
      title={hook === undefined ? w.add : w.editTitle(hook.name || hook.url)}
      onClose={onClose}
      onSubmit={save}
      actions={
        <>
          <Button onClick={onClose}>{messages.frame.cancel}</Button>
          <Button kind="main" type="submit">
            {hook === undefined ? w.create : messages.settings.save}
          </Button>
        </>
      }
    >
      <Field
        label={w.url}
        value={url}
        onInput={setUrl}
        help={w.urlHelp}
        error={getError("url")}
        placeholder="https://"
        isRequired
        autofocus
      />
      <Field label={w.name} value={name} onInput={setName} error={getError("name")} />
      <Select label={w.format} value={format} choices={formats} onChange={setFormat} />
      {format === "custom" && (
        <Area label={w.template} value={template} onInput={setTemplate} error={getError("template")} />
      )}
      <fieldset class="stack tight">
        <legend class="label">{w.events}</legend>
        {eventNames.map((event) => (
          <Checkbox
            key={event}
            label={w.eventNames[event]!}
            isOn={events.includes(event)}
            onChange={(isOn) =>
              setEvents(isOn ? [...events, event] : events.filter((value) => value !== event))
            }
          />
        ))}
      </fieldset>
      {failure && !fields.includes(failure.attr ?? "") && (
        <p class="error" role="alert">
          {failure.detail}
        </p>
      )}
    </Dialog>
  );
}

/** @throws {ApiError} like the server's. */
function parsed(template: string): unknown {
  try {
    return JSON.parse(template);
  } catch {
    throw new ApiError(400, "invalid_input", w.templateWrong, "template");
  }
}
