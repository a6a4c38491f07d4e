return redis.call('SET', KEYS[1], unpack(ARGV))
