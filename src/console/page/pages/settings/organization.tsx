/** Organization: name and edit access to flags. */

import { Field, Select } from "../../components/fields.tsx";
import { Form } from "../../components/form.tsx";
import { request } from "../../lib/api.ts";
import { useUnsavedFields } from "../../lib/form.ts";
import { isAdmin, loadSession, me } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";

const w = messages.settings;

export function OrganizationSettings() {
  const organization = me.value?.organization;
  const unsaved = useUnsavedFields("organization");
  const [name, setName] = unsaved.field("name", organization?.name ?? "");
  const [access, setAccess] = unsaved.field("access", String(organization?.feature_flags_access_level ?? 37));
  const disabledReason = !isAdmin.value && messages.frame.onlyAdmins;
  return (
    <section class="card">
      <h2>{w.tabs.organization}</h2>
      <Form
        unsaved={unsaved}
        disabledReason={disabledReason}
        onSend={async () => {
          const body = { name, feature_flags_access_level: Number(access) };
          await request("/api/organizations/@current/", { method: "PATCH", body });
          await loadSession();
        }}
      >
        {(errorOf) => (
          <div class="columns">
            <Field
              label={w.name}
              value={name}
              onInput={setName}
              error={errorOf("name")}
              isDisabled={!!disabledReason}
            />
            <Select
              label={w.flagsAccess}
              value={access}
              disabledReason={disabledReason}
              choices={Object.entries(w.accessLevels)}
              onChange={setAccess}
            />
          </div>
        )}
      </Form>
    </section>
  );
}
