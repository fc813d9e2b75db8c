-- Texts of numbers end no longer with `.0`: columns of properties are filled anew, and are not used until they are.
UPDATE property_column SET filled_from = (SELECT coalesce(max(rowid), -1) + 1 FROM events);
