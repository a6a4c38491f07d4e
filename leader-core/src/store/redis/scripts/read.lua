-- Stands before the scripts that read what somebody else may have written: what is no value of ours is none at all.

-- An instant in ms that this library can tell.
local function read_instant(text)
  local at = tonumber(string.match(text or '', '^%-?%d+$'))
  return at and math.abs(at) < 253402207200000 and at or nil
end

-- A number that can be told from the next one.
local function read_number(text)
  local number = tonumber(string.match(text or '', '^%d+$'))
  return number and number < 9007199254740992 and number or nil
end

local function is_name(text)
  return #text <= 100 and string.find(text, '^[%w_.:/-]+$') ~= nil
end

-- What a key of another type holds is of nobody's use: it goes, and the command is given again.
local function ask_anew(key, ...)
  local answer = redis.pcall(...)
  if type(answer) ~= 'table' or not answer.err then
    return answer
  end
  if string.find(answer.err, 'WRONGTYPE', 1, true) then
    redis.call('DEL', key)
  end
  return redis.call(...)
end

-- A count that is none begins anew.
local function count_up(key, field, by)
  if type(redis.pcall('HINCRBY', key, field, by)) == 'table' then
    redis.call('HSET', key, field, by)
  end
end

