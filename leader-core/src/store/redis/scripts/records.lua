-- Stands before the scripts that write records: keeps a job's list of them within its bounds.
-- The job's hash says in `kept:ran` and `kept:passed`: when it is worth looking for old records again, and up to which tick details were
-- trimmed, if any were.

-- Drops what is too many, and what is older than `age`, but never the newest. Gives what the hash is to say, or nil for what it says.
local function trim_records(key, length, most, age, now, kept)
  local match = string.match
  local look, trimmed = match(kept or '', '^(%d+)|(%-?%d*)$')
  local upto, again = tonumber(trimmed), tonumber(look)
  local function drop()
    local last = tonumber(match(redis.call('RPOP', key), '^[^|]*|(%-?%d+)|'))
    upto = math.max(upto or last or 0, last or 0)
    length = length - 1
  end
  while length > most do
    drop()
  end
  if not again or again <= now then
    again = now + age
    while length > 1 do
      local settled = match(redis.call('LINDEX', key, -1), '^[^|]*|[^|]*|[^|]*|[^|]*|[^|]*|[^|]*|[^|]*|[^|]*|(%d+)|')
      if settled and tonumber(settled) + age > now then
        again = tonumber(settled) + age
        break
      end
      drop()
    end
  end
  local said = string.format('%.0f', again) .. '|' .. (upto and string.format('%.0f', upto) or '')
  return said ~= kept and said or nil
end

local function keep_record(key, line, most, age, now, kept)
  local length = ask_anew(key, 'LPUSH', key, line)
  if length > most or not kept or (tonumber(string.match(kept, '^%d+')) or 0) <= now then
    return trim_records(key, length, most, age, now, kept)
  end
end

